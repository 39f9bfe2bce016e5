package tidy

import (
	"go/ast"
	"regexp"
	"strings"
)

// decoderName is how a decoder of bytes from outside is recognised, together with
// a []byte among its arguments.
var decoderName = regexp.MustCompile(`^([Dd]ecode|[Uu]nmarshal|[Pp]arse)([A-Z].*)?$`)

// ruleDecodersAreFuzzed: a decoder is called by a fuzz target of its package, or
// by another function of the package that is.
func ruleDecodersAreFuzzed(t *tree) (bad []string) {
	for _, files := range t.packages() {
		reached := fuzzReach(files)
		for _, f := range files {
			if f.test || f.generated {
				continue
			}
			f.funcs(func(fn *ast.FuncDecl) {
				if decoderName.MatchString(fn.Name.Name) && takesBytes(fn) && !reached[fn.Name.Name] {
					bad = append(bad, t.at(fn, "%s decodes bytes from outside and no fuzz target of %s reaches it", funcName(fn), f.dir))
				}
			})
		}
	}
	return bad
}

// fuzzReach gives the names of all functions of a package that its fuzz targets
// reach, by name: a superset of the truth, which is enough for a reminder.
func fuzzReach(files []*file) map[string]bool {
	calls := map[string][]string{}
	collect := func(name string, in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name != name {
				calls[name] = append(calls[name], id.Name)
			}
			return true
		})
	}
	var open []string
	for _, f := range files {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				collect(d.Name.Name, d)
				if f.test && strings.HasPrefix(d.Name.Name, "Fuzz") {
					open = append(open, d.Name.Name)
				}
			case *ast.GenDecl: // a table of decoders in a variable
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						collect(v.Names[0].Name, v)
					}
				}
			}
		}
	}
	reached := map[string]bool{}
	for len(open) > 0 {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if reached[name] {
			continue
		}
		reached[name] = true
		open = append(open, calls[name]...)
	}
	return reached
}

func takesBytes(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		if a, ok := p.Type.(*ast.ArrayType); ok && a.Len == nil {
			if id, ok := a.Elt.(*ast.Ident); ok && id.Name == "byte" {
				return true
			}
		}
	}
	return false
}
