// Command fuzz runs every fuzz target of the module, one after another, each for
// -seconds; a failure does not stop the others.
//
// Go up to 1.26 sometimes fails a target whose time is up with a bare 'context
// deadline exceeded' (go.dev/issue/75804: its coordinator looks at the context of
// its workers before that has learnt of the deadline). Nothing was found then, and
// no input was kept; such an end is told, and is none to fail for.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// minimize bounds what Go spends on making an input smaller, during which it tries
// no others: by default a minute, all that a short run has.
const minimize = "1s"

// target is one fuzz function.
type target struct{ dir, name string }

func main() {
	seconds := flag.Int("seconds", 20, "of each target")
	flag.Parse()
	targets, err := find(".")
	if err != nil || len(targets) == 0 {
		fmt.Fprintln(os.Stderr, "fuzz: no targets:", err)
		os.Exit(1)
	}
	var failed []string
	for _, t := range targets {
		if !t.run(*seconds) {
			failed = append(failed, t.name+" in "+t.dir)
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(os.Stderr, "--- FAIL: %d of %d fuzz targets: %s\n", len(failed), len(targets), strings.Join(failed, ", "))
		os.Exit(1)
	}
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// find gives the targets of the module at root, by folder and place.
func find(root string) (targets []target, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(root, path)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			targets = append(targets, target{dir: filepath.Dir(path), name: string(m[1])})
		}
		return err
	})
	return targets, err
}

// skip leaves out what the go command does: hidden folders, testdata, other modules.
func skip(root, path string) error {
	name := filepath.Base(path)
	if path == root {
		return nil
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || name == "testdata" || name[0] == '.' || name[0] == '_' {
		return fs.SkipDir
	}
	return nil
}

// run fuzzes a target and tells whether it stands.
func (t target) run(seconds int) bool {
	var said strings.Builder
	cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", fmt.Sprintf("%ds", seconds),
		"-fuzzminimizetime", minimize, "./"+t.dir)
	cmd.Stdout = &tee{&said}
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	if err != nil && timeWasUp(said.String()) {
		fmt.Printf("%s: the time was up, which Go took for a failure (go.dev/issue/75804); nothing was found\n", t.name)
		return true
	}
	return err == nil
}

// tee shows what it is given, and keeps it.
type tee struct{ kept *strings.Builder }

// Write implements io.Writer.
func (w *tee) Write(p []byte) (int, error) {
	w.kept.Write(p)
	return os.Stdout.Write(p)
}

var (
	deadlineAlone = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \([^)]*\)\n    context deadline exceeded\nFAIL$`)
	found         = regexp.MustCompile(`(?m)Failing input written to|failure while testing seed corpus|^panic: |^fatal error: |WARNING: DATA RACE`)
)

// timeWasUp tells whether a failed run's output is that of a run whose time was up.
func timeWasUp(output string) bool {
	return deadlineAlone.MatchString(output) && !found.MatchString(output)
}
