package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is the repository's source, parsed.
type tree struct {
	fset  *token.FileSet
	files []*file           // in path order
	texts map[string]string // other files by path: go.mod, documents, scripts, contracts
}

// file is one Go file.
type file struct {
	path      string // from the root, with slashes
	dir       string // of path: the package's place, "." for the root
	test      bool
	generated bool
	lines     int
	ast       *ast.File
}

// textEndings are the other files that rules look at.
var textEndings = []string{".md", ".proto", ".mod", ".sh", "Makefile", ".ci/run"}

func loadTree(t *testing.T) *tree {
	t.Helper()
	root := filepath.Join("..", "..")
	out := &tree{fset: token.NewFileSet(), texts: map[string]string{}}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == ".git" || rel == "bin" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		return out.load(p, rel)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (t *tree) load(at, rel string) error {
	goFile := strings.HasSuffix(rel, ".go")
	text := slices.ContainsFunc(textEndings, func(e string) bool { return strings.HasSuffix(rel, e) })
	if !goFile && !text {
		return nil
	}
	b, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	if !goFile {
		t.texts[rel] = string(b)
		return nil
	}
	return t.add(rel, string(b))
}

// add parses one Go file into the tree.
func (t *tree) add(rel, source string) error {
	f, err := parser.ParseFile(t.fset, rel, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &file{path: rel, dir: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"),
		generated: ast.IsGenerated(f), lines: strings.Count(source, "\n"), ast: f})
	return nil
}

// at makes a complaint about a place.
func (t *tree) at(n ast.Node, format string, args ...any) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// product gives the files that people wrote and that ship.
func (t *tree) product() []*file {
	return t.pick(func(f *file) bool { return !f.test && !f.generated })
}

// written gives the files that people wrote, tests included.
func (t *tree) written() []*file {
	return t.pick(func(f *file) bool { return !f.generated })
}

func (t *tree) pick(want func(*file) bool) []*file {
	var list []*file
	for _, f := range t.files {
		if want(f) {
			list = append(list, f)
		}
	}
	return list
}

// packages groups the files by folder.
func (t *tree) packages() map[string][]*file {
	out := map[string][]*file{}
	for _, f := range t.files {
		out[f.dir] = append(out[f.dir], f)
	}
	return out
}

// imports gives a file's imported paths with the node of each.
func (f *file) imports(each func(path string, spec *ast.ImportSpec)) {
	for _, s := range f.ast.Imports {
		each(strings.Trim(s.Path.Value, `"`), s)
	}
}

// funcs visits a file's functions and methods.
func (f *file) funcs(each func(*ast.FuncDecl)) {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			each(fn)
		}
	}
}

// funcName gives Name, or Receiver.Name.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// calls visits every package-qualified use `pkg.Name` of an import path.
func (f *file) uses(importPath string, each func(name string, n ast.Node)) {
	local := path.Base(importPath)
	if strings.HasPrefix(local, "v") && len(local) == 2 {
		local = path.Base(path.Dir(importPath))
	}
	found := false
	f.imports(func(p string, s *ast.ImportSpec) {
		if p == importPath {
			found = true
			if s.Name != nil {
				local = s.Name.Name
			}
		}
	})
	if !found {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				each(sel.Sel.Name, sel)
			}
		}
		return true
	})
}
