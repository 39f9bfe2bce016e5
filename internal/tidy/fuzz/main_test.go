package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// up is what Go 1.26 says of a target whose time was up at a bad instant.
const up = `fuzz: elapsed: 2s, execs: 7950 (3884/sec), new interesting: 3 (total: 5)
--- FAIL: FuzzDirectory (2.06s)
    context deadline exceeded
FAIL
exit status 1
FAIL	strake/internal/discovery	2.065s
`

func TestOnlyATimeThatWasUpIsForgiven(t *testing.T) {
	for output, want := range map[string]bool{
		up: true,
		"Failing input written to testdata/fuzz/FuzzX/1\n" + up:   false,
		"failure while testing seed corpus entry: FuzzX/1\n" + up: false,
		"panic: x\n" + up: false,
		"--- FAIL: FuzzX (0.02s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:5: context deadline exceeded\nFAIL": false,
		"--- FAIL: FuzzX (2.02s)\n    context deadline exceeded\n    x_test.go:5: and more\nFAIL":                    false,
		"--- FAIL: FuzzX (2.02s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL":          false,
		"": false,
	} {
		if got := timeWasUp(output); got != want {
			t.Errorf("%q: got %v", output, got)
		}
	}
}

func TestTargetsAreFoundWhereTheGoCommandLooks(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"a/x_test.go":          "package a\n\nfunc FuzzOne(f *testing.F) {}\n\nfunc FuzzTwo(f *testing.F) {}\n",
		"a/x.go":               "package a\n\nfunc FuzzNot() {}\n",
		"a/testdata/x_test.go": "func FuzzNot(f *testing.F) {}\n",
		".hidden/x_test.go":    "func FuzzNot(f *testing.F) {}\n",
		"other/go.mod":         "module other\n",
		"other/x_test.go":      "func FuzzNot(f *testing.F) {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := find(root)
	want := []target{{filepath.Join(root, "a"), "FuzzOne"}, {filepath.Join(root, "a"), "FuzzTwo"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}
