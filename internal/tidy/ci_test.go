package tidy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCITellsAtItsEndWhatFailed: by name, with the lines that say why, in the two
// shapes of go test's output, with -v and without.
func TestCITellsAtItsEndWhatFailed(t *testing.T) {
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("NOT CHECKED: no awk here")
	}
	tell := func(input string) string {
		out, err := exec.Command("awk", "-f", filepath.Join("..", "..", ".ci", "failures.awk"), input).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "ci-failures.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got := tell(filepath.Join("testdata", "ci-output.txt")); got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	if err := os.WriteFile(bare, []byte("one\nmake: *** [Makefile:34: lint] Error 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := tell(bare); got != "    one\n    make: *** [Makefile:34: lint] Error 1\n" {
		t.Errorf("without a test that failed: got\n%s", got)
	}
}
