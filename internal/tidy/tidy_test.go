package tidy

import (
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTree holds the repository to every rule.
func TestTree(t *testing.T) {
	all := loadTree(t)
	exceptions := readLong(t)
	check := func(name string, bad []string) {
		t.Run(name, func(t *testing.T) {
			slices.Sort(bad)
			for _, b := range bad {
				t.Error(b)
			}
		})
	}
	check("CoresArePure", ruleCoresArePure(all))
	check("ImportsPointDown", ruleImportsPointDown(all))
	check("PackagesAreTold", rulePackagesAreTold(all))
	check("PackagesHaveNouns", rulePackagesHaveNouns(all))
	check("DecodersAreFuzzed", ruleDecodersAreFuzzed(all))
	check("FunctionsAreShort", ruleFunctionsAreShort(all, exceptions))
	check("MostFunctionsAreSmall", ruleMostFunctionsAreSmall(all))
	check("FilesAreShort", ruleFilesAreShort(all))
	check("DependenciesAreTold", ruleDependenciesAreTold(all))
	check("NothingIsPutOff", ruleNothingIsPutOff(all))
	check("OnlyMainExits", ruleOnlyMainExits(all))
	check("NoInit", ruleNoInit(all))
}

// TestGeneratedCodeIsFresh makes the protobuf code again and compares.
func TestGeneratedCodeIsFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("the long tests and `make generate-check` do it")
	}
	cmd := exec.Command("go", "run", "./proto/generate", "-check")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case strings.Contains(string(out), "is stale"):
		t.Error(string(out))
	default:
		t.Skipf("NOT CHECKED: the generator can't run here: %v\n%s", err, out)
	}
}

// TestEveryRuleCatches shows each rule a tree that breaks it: a rule that sees
// nothing any more would pass for ever.
func TestEveryRuleCatches(t *testing.T) {
	long := "package x\nfunc f() {\n" + strings.Repeat("\t_ = 1\n", maxFuncLines) + "}\n"
	unfinishedMark := "TO" + "DO"
	cases := []struct {
		name, path, source string
		rule               func(*tree) []string
		want               string
	}{
		{"a clock in a core", "meta/state/x.go", "package state\nimport \"time\"\nvar _ = time.Now()\n", ruleCoresArePure, "time.Now"},
		{"a lock in a core", "chunkd/format/x.go", "package format\nimport _ \"sync/atomic\"\n", ruleCoresArePure, "sync/atomic"},
		{"global randomness in a core", "client/internal/write/x.go", "package write\nimport \"math/rand/v2\"\nvar _ = rand.Int()\n", ruleCoresArePure, "rand.Int"},
		{"a goroutine in a core", "meta/reconcile/x.go", "package reconcile\nfunc f() { go f() }\n", ruleCoresArePure, "goroutine"},
		{"client imports chunkd", "client/x.go", "package client\nimport _ \"strake/chunkd/store\"\n", ruleImportsPointDown, "may not import chunkd/store"},
		{"proto imports meta", "proto/frame/x.go", "package frame\nimport _ \"strake/meta\"\n", ruleImportsPointDown, "may not import meta"},
		{"an unknown folder", "misc/x.go", "package misc\nimport _ \"strake/client\"\n", ruleImportsPointDown, "no line"},
		{"a package without comment", "ctl/x.go", "package ctl\n", rulePackagesAreTold, "no package comment"},
		{"a vague name", "internal/util/x.go", "package util\n", rulePackagesHaveNouns, "noun"},
		{"a decoder without fuzz target", "proto/frame/x.go", "package frame\nfunc DecodeX(b []byte) {}\n", ruleDecodersAreFuzzed, "DecodeX"},
		{"a long function", "ctl/x.go", long, func(t *tree) []string { return ruleFunctionsAreShort(t, nil) }, "72 lines"},
		{"an exception left over", "ctl/x.go", "package ctl\n", func(t *tree) []string { return ruleFunctionsAreShort(t, map[string]int{"ctl/x.go f": 80}) }, "take the line out"},
		{"an exception that grew", "ctl/x.go", long, func(t *tree) []string { return ruleFunctionsAreShort(t, map[string]int{"ctl/x.go f": 71}) }, "may only shrink"},
		{"only long functions", "ctl/x.go", long, ruleMostFunctionsAreSmall, "0 of 1"},
		{"a long file", "ctl/x.go", "package ctl\n" + strings.Repeat("\n", maxFileLines), ruleFilesAreShort, "501 lines"},
		{"work put off", "ctl/x.go", "package ctl\n\n// " + unfinishedMark + ": later\n", ruleNothingIsPutOff, unfinishedMark},
		{"a library exits", "ctl/x.go", "package ctl\nimport \"os\"\nfunc f() { os.Exit(1) }\n", ruleOnlyMainExits, "only main exits"},
		{"an init", "ctl/x.go", "package ctl\nfunc init() {}\n", ruleNoInit, "no init"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			broken := &tree{fset: token.NewFileSet(), texts: map[string]string{}}
			if err := broken.add(c.path, c.source); err != nil {
				t.Fatal(err)
			}
			bad := c.rule(broken)
			if len(bad) == 0 || !strings.Contains(strings.Join(bad, "\n"), c.want) {
				t.Fatalf("got %q, want a complaint with %q", bad, c.want)
			}
		})
	}
}

func TestDependenciesAreComparedBothWays(t *testing.T) {
	broken := &tree{texts: map[string]string{
		"go.mod":               "module x\n\ntool a.org/tools/cmd/lint\n\nrequire b.org/used v1.0.0\nrequire (\n\ta.org/tools v1.0.0 // indirect\n\tc.org/deep v1.0.0 // indirect\n)\n",
		"docs/dependencies.md": "| a.org/tools | lint | - |\n| d.org/gone | - | - |\n",
	}}
	bad := ruleDependenciesAreTold(broken)
	slices.Sort(bad)
	got := strings.Join(bad, "\n")
	if len(bad) != 2 || !strings.Contains(got, "b.org/used has no line") || !strings.Contains(got, "d.org/gone is not a direct") {
		t.Fatalf("got %s", got)
	}
}
