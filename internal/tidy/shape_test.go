package tidy

import (
	"fmt"
	"go/ast"
	"os"
	"strings"
	"testing"
)

const (
	maxFuncLines   = 70
	maxFileLines   = 500
	usualFuncLines = 35
	usualPercent   = 90 // of functions are at most usualFuncLines long
	longList       = "testdata/long.txt"
)

// readLong reads the exceptions.
func readLong(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(longList)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var where, name string
		var lines int
		if _, err := fmt.Sscanf(line, "%s %s %d", &where, &name, &lines); err != nil {
			t.Fatalf("%s: %q: want PATH FUNCTION LINES", longList, line)
		}
		out[where+" "+name] = lines
	}
	return out
}

// ruleFunctionsAreShort: no function is longer than maxFuncLines, but for the
// exceptions, which may only become shorter and fewer.
func ruleFunctionsAreShort(t *tree, exceptions map[string]int) (bad []string) {
	seen := map[string]bool{}
	for _, f := range t.written() {
		f.funcs(func(fn *ast.FuncDecl) {
			where, n := f.path+" "+funcName(fn), t.span(fn)
			if n <= maxFuncLines {
				return
			}
			limit, known := exceptions[where]
			seen[where] = true
			switch {
			case !known:
				bad = append(bad, t.at(fn, "%s has %d lines, at most %d are allowed: there is a second function inside", funcName(fn), n, maxFuncLines))
			case n > limit:
				bad = append(bad, t.at(fn, "%s grew to %d lines; %s allows it %d and may only shrink", funcName(fn), n, longList, limit))
			case n < limit:
				bad = append(bad, t.at(fn, "%s shrank to %d lines: say so in %s", funcName(fn), n, longList))
			}
		})
	}
	for where := range exceptions {
		if !seen[where] {
			bad = append(bad, fmt.Sprintf("%s: %s is not too long any more: take the line out", longList, where))
		}
	}
	return bad
}

// ruleMostFunctionsAreSmall: usualPercent of the product's functions are at most
// usualFuncLines long.
func ruleMostFunctionsAreSmall(t *tree) []string {
	total, small := 0, 0
	for _, f := range t.product() {
		f.funcs(func(fn *ast.FuncDecl) {
			total++
			if t.span(fn) <= usualFuncLines {
				small++
			}
		})
	}
	if small*100 < total*usualPercent {
		return []string{fmt.Sprintf("%d of %d functions have at most %d lines, %d %% should", small, total, usualFuncLines, usualPercent)}
	}
	return nil
}

// ruleFilesAreShort: no file is longer than maxFileLines.
func ruleFilesAreShort(t *tree) (bad []string) {
	for _, f := range t.written() {
		if f.lines > maxFileLines {
			bad = append(bad, fmt.Sprintf("%s:1: %d lines, at most %d are allowed: split it by duty", f.path, f.lines, maxFileLines))
		}
	}
	return bad
}

// span is a function's length in lines.
func (t *tree) span(fn *ast.FuncDecl) int {
	return t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
}
