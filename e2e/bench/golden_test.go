package bench_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"strake/e2e/bench"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestDrawingsAreGolden compares the table and the whole report of a fixed result
// with what they were when somebody looked at them.
func TestDrawingsAreGolden(t *testing.T) {
	r := fixedResult(t)
	var table bytes.Buffer
	r.Text(&table)
	path, err := bench.WriteReport(t.TempDir(), r)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"table.txt": table.Bytes(), "report.html": page} {
		golden := filepath.Join("testdata", name)
		if *rewrite {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what it was; look at it, then: go test ./e2e/bench -run Golden -rewrite\ngot:\n%s", name, got)
		}
	}
}
