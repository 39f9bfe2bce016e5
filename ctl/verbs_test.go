package ctl

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// run runs the command and gives what it printed and its exit code.
func run(args ...string) (stdout, stderr string, code int) {
	var out, bad bytes.Buffer
	code = Main(args, &out, &bad)
	return out.String(), bad.String(), code
}

// verbsOf gives the verbs of a command tree: whatever runs, but nouns, which only
// list what is below them, and what is hidden. Each shell of completion counts
// for one verb.
func verbsOf(c *cobra.Command, path string) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	for _, sub := range c.Commands() {
		name := strings.TrimSpace(path + " " + sub.Name())
		switch {
		case sub.Hidden:
			continue
		case sub.Name() == "completion":
			out[name] = sub
			continue
		case sub.Annotations[noun] == "":
			out[name] = sub
		}
		maps.Copy(out, verbsOf(sub, name))
	}
	return out
}

func TestTableOfVerbsIsTheCommandTree(t *testing.T) {
	tree := verbsOf((&app{}).root(), "")
	for _, v := range verbs {
		if tree[v] == nil {
			t.Errorf("%q is in the table and not in the command", v)
		}
	}
	for v := range tree {
		if !slices.Contains(verbs, v) {
			t.Errorf("%q is in the command and not in the table", v)
		}
	}
}

// TestHintsNameVerbsThatAreThere looks for every command that the source tells
// people to run, in hints and in comments.
func TestHintsNameVerbsThatAreThere(t *testing.T) {
	told := regexp.MustCompile("`strake ([a-z]+(?: [a-z]+)?)[^`\n]*`")
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range told.FindAllSubmatch(src, -1) {
			verb, rest, bad := (&app{}).root().Find(strings.Fields(string(m[1])))
			if bad != nil || !verb.HasParent() || verb.Annotations[noun] != "" && len(rest) > 0 {
				t.Errorf("%s names %q, which is no verb", path, m[0])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryVerbHasWordsAndAnExample(t *testing.T) {
	for name, c := range verbsOf((&app{}).root(), "") {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s: short text %q, example %q", name, c.Short, c.Example)
		}
		if !strings.HasPrefix(strings.TrimSpace(c.Example), "strake ") && !strings.Contains(c.Example, "| strake ") {
			t.Errorf("%s: the example does not call strake: %q", name, c.Example)
		}
	}
}

func TestEveryVerbHelpsItself(t *testing.T) {
	for name := range verbsOf((&app{}).root(), "") {
		out, bad, code := run(append(strings.Fields(name), "--help")...)
		if code != 0 || bad != "" || !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help: exit %d, stderr %q, stdout %q", name, code, bad, out)
		}
	}
}

// TestExamplesParse runs each example's command lines up to the point where they
// would begin. An example may show another verb too, beside its own.
func TestExamplesParse(t *testing.T) {
	for name, c := range verbsOf((&app{}).root(), "") {
		own := name == "completion"
		for line := range strings.Lines(c.Example) {
			_, line, _ = strings.Cut(line, "strake ")
			line, _, _ = strings.Cut(line, "|")
			line, _, _ = strings.Cut(line, ">")
			root := (&app{}).root()
			verb, rest, err := root.Find(strings.Fields(line))
			if err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
				continue
			}
			own = own || verb.CommandPath() == c.CommandPath()
			if err := verb.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
				continue
			}
			if err := verb.ValidateArgs(verb.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
			if err := verb.ValidateRequiredFlags(); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		if !own {
			t.Errorf("%s: the example shows other verbs alone: %q", name, c.Example)
		}
	}
}

func TestWrongUsageExits2(t *testing.T) {
	cases := [][]string{
		{"frobnicate"}, {"volume", "frobnicate"}, {"status", "--frobnicate"}, {"status", "extra"}, {"status", "-o", "xml"},
		{"volume", "create"}, {"volume", "create", "x"}, {"volume", "create", "x", "--size", "3XB"},
		{"volume", "create", "x", "--size", "-1"}, {"volume", "create", "x", "--size", "1GiB", "--k", "two"},
		{"volume", "create", "x", "--size", "1GiB", "--k", "5"}, {"volume", "create", "x", "--size", "1GiB", "--m", "1"},
		{"volume", "import", "x"}, {"volume", "export", "x"}, {"meta", "serve"}, {"chunkd", "serve"}, {"dev", "--chunkds", "1"},
	}
	for _, args := range cases {
		out, bad, code := run(args...)
		if code != exitUsage || out != "" || !strings.HasPrefix(bad, "strake: ") || !strings.Contains(bad, "  try: ") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out, bad)
		}
	}
}

func TestErrorsAsJSONHaveTheirShape(t *testing.T) {
	for _, args := range [][]string{
		{"-o", "json", "frobnicate"},
		{"status", "--frobnicate", "-o", "json"},
		{"volume", "create", "x", "-o=json"},
		{"volume", "create", "X", "--size", "1GiB", "--output", "json"},
	} {
		out, bad, code := run(args...)
		var f map[string]map[string]string
		d := json.NewDecoder(strings.NewReader(bad))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil || code == 0 || out != "" || strings.Count(bad, "\n") != 1 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q: %v", args, code, out, bad, err)
			continue
		}
		e := f["error"]
		if len(f) != 1 || len(e) != 3 || e["kind"] != "invalid-argument" || e["message"] == "" || e["hint"] == "" {
			t.Errorf("%q: got %v", args, f)
		}
	}
}
