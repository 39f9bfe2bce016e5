package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// unfinished matches marks of work that was put off. It belongs into an issue.
var unfinished = regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`)

// ruleNothingIsPutOff: no marks of unfinished work in code, documents or scripts.
func ruleNothingIsPutOff(t *tree) (bad []string) {
	for _, f := range t.written() {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if m := unfinished.FindString(c.Text); m != "" {
					bad = append(bad, t.at(c, "%s: finish it, or open an issue", m))
				}
			}
		}
	}
	for path, text := range t.texts {
		for i, line := range strings.Split(text, "\n") {
			if m := unfinished.FindString(line); m != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: %s: finish it, or open an issue", path, i+1, m))
			}
		}
	}
	return bad
}

// rulePackagesAreTold: every package says in a comment what it is.
func rulePackagesAreTold(t *tree) (bad []string) {
	for dir, files := range t.packages() {
		var first *file
		told := false
		for _, f := range files {
			if f.test {
				continue
			}
			if first == nil {
				first = f
			}
			want := "Package " + f.ast.Name.Name
			if f.ast.Name.Name == "main" {
				want = "Command "
			}
			told = told || strings.HasPrefix(f.ast.Doc.Text(), want)
		}
		if first != nil && !told {
			bad = append(bad, fmt.Sprintf("%s:1: package %s has no package comment; put one into %s/doc.go", first.path, first.ast.Name.Name, dir))
		}
	}
	return bad
}

// ruleOnlyMainExits: os.Exit and log.Fatal stand in package main alone.
func ruleOnlyMainExits(t *tree) (bad []string) {
	for _, f := range t.written() {
		if f.ast.Name.Name == "main" {
			continue
		}
		f.uses("os", func(name string, n ast.Node) {
			if name == "Exit" && !insideTestMain(f, n) {
				bad = append(bad, t.at(n, "only main exits; return an error"))
			}
		})
		f.uses("log", func(name string, n ast.Node) {
			if strings.HasPrefix(name, "Fatal") {
				bad = append(bad, t.at(n, "only main exits; return an error"))
			}
		})
	}
	return bad
}

// insideTestMain: TestMain is the main of a test binary.
func insideTestMain(f *file, n ast.Node) (inside bool) {
	f.funcs(func(fn *ast.FuncDecl) {
		inside = inside || f.test && fn.Name.Name == "TestMain" && fn.Pos() <= n.Pos() && n.End() <= fn.End()
	})
	return inside
}

// ruleNoInit: dependencies come in through constructors.
func ruleNoInit(t *tree) (bad []string) {
	for _, f := range t.written() {
		f.funcs(func(fn *ast.FuncDecl) {
			if fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, t.at(fn, "no init functions: make it a constructor"))
			}
		})
	}
	return bad
}

// vague are package names that say that no noun was found yet.
var vague = []string{"common", "util", "utils", "helper", "helpers", "types", "base", "manager", "misc", "lib"}

// rulePackagesHaveNouns: no package has a vague name.
func rulePackagesHaveNouns(t *tree) (bad []string) {
	for _, f := range t.written() {
		if slices.Contains(vague, strings.TrimSuffix(f.ast.Name.Name, "_test")) {
			bad = append(bad, t.at(f.ast, "package %s: find the noun that it owns", f.ast.Name.Name))
		}
	}
	return bad
}
