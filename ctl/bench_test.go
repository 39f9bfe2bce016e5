package ctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchHelpsItself: bench is a verb and a noun, so the table of leaves does
// not hold it.
func TestBenchHelpsItself(t *testing.T) {
	out, bad, code := run("bench", "--help")
	if code != 0 || bad != "" || !strings.Contains(out, "Examples:\n  strake bench") || !strings.Contains(out, "degraded-randread-4k-qd32") {
		t.Errorf("exit %d, stderr %q, stdout %q", code, bad, out)
	}
	if strings.Contains(out, "worker") {
		t.Errorf("the hidden verb is shown: %s", out)
	}
}

// TestBenchRefusesBeforeItStarts: wrong options cost nobody a cell.
func TestBenchRefusesBeforeItStarts(t *testing.T) {
	for _, args := range [][]string{
		{"bench", "--case", "warpread"}, {"bench", "--seconds", "0"}, {"bench", "--chunkds", "1"}, {"bench", "--clients", "0"},
		{"bench", "--size", "1MiB"}, {"bench", "--trace", "/nonexistent/f"}, {"bench", "interference", "--trace", "/nonexistent/f"}, {"bench", "--cell", "127.0.0.1:1"}, {"bench", "report"}, {"bench", "report", "x", "--from", "/nonexistent"},
	} {
		out, bad, code := run(append(args, "-o", "json")...)
		if code == 0 || out != "" || !strings.Contains(bad, `"kind":"`) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out, bad)
		}
	}
}

// TestBenchReportDrawsAnOldResult goes from JSON to a page.
func TestBenchReportDrawsAnOldResult(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	out, bad, code := run("bench", "report", dir, "--from", filepath.Join("..", "e2e", "bench", "testdata", "bench.json"))
	if code != 0 || !strings.Contains(out, "report.html") {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, out, bad)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "<svg") {
		t.Errorf("no plot in the page: %v", err)
	}
}
