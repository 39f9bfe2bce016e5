package ctl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// deployed are the files that start strake on people's machines.
func deployed(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join("..", "deploy"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".service", "Dockerfile"}, or(filepath.Ext(path), d.Name())) {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	// inLists are the command lines of manifests and images, as lists.
	inLists = regexp.MustCompile(`(?s)(?:args|command|CMD|ENTRYPOINT)(?::| )\s*\[(.*?)\]`)
	inUnits = regexp.MustCompile(`(?m)^Exec\w+=(.*)$`)
	// variables are those of strake's settings.
	variables = regexp.MustCompile(`\bSTRAKE_[A-Z0-9_]+\b`)
)

// commandLines gives the lines of a file that start strake.
func commandLines(text string) (lines [][]string) {
	for _, m := range inLists.FindAllStringSubmatch(text, -1) {
		var args []string
		for _, word := range strings.Split(m[1], ",") {
			args = append(args, strings.Trim(strings.TrimSpace(word), `"'`))
		}
		lines = append(lines, args)
	}
	for _, m := range inUnits.FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Fields(m[1]))
	}
	return lines
}

// TestWhatIsDeployedStarts: each command line in deploy names a verb that there is, with
// flags that it has and values that they take, and each variable is a setting's.
func TestWhatIsDeployedStarts(t *testing.T) {
	lines, set := 0, 0
	for file, text := range deployed(t) {
		for _, args := range commandLines(text) {
			if filepath.Base(args[0]) == "strake" {
				args = args[1:]
			}
			if len(args) == 0 || strings.Contains(strings.Join(args, " "), "etcd") || args[0] == "--data-dir" {
				continue // an entry point alone, or etcd's
			}
			lines++
			if err := parses(args); err != nil {
				t.Errorf("%s: %q: %v", file, args, err)
			}
		}
		for _, name := range variables.FindAllString(text, -1) {
			if slices.Contains([]string{"STRAKE_IMAGE", "STRAKE_ETCD_IMAGE", "STRAKE_PROJECT"}, name) {
				continue // compose's own
			}
			set++
			if !settings()[name] {
				t.Errorf("%s: %s is no setting's variable", file, name)
			}
		}
	}
	if lines < 9 || set < 15 {
		t.Errorf("%d command lines and %d variables were found: the files are not read as they are written", lines, set)
	}
	if parses([]string{"chunkd", "serve", "--no-such-flag"}) == nil || parses([]string{"no-such-verb"}) == nil {
		t.Error("a line that can't start was taken")
	}
}

// parses tells whether a command line is one of a verb that runs.
func parses(args []string) error {
	cmd, rest, err := (&app{out: io.Discard, err: io.Discard}).root().Find(args)
	if err != nil {
		return err
	}
	switch err := cmd.ParseFlags(rest); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if !cmd.Runnable() {
		return usageError{pflag.ErrHelp}
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// settings are the variables that settings come from.
func settings() map[string]bool {
	known := map[string]bool{"STRAKE_CELL": true, "STRAKE_CONFIG": true}
	for _, noun := range (&app{out: io.Discard, err: io.Discard}).root().Commands() {
		for _, verb := range noun.Commands() {
			if verb.Name() != "serve" {
				continue
			}
			verb.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { known[variableOf(noun.Name()+"."+f.Name)] = true })
		}
	}
	return known
}
