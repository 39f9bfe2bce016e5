package ctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type shown struct {
	File     string
	Settings map[string]setting
}

func showConfig(t *testing.T, args ...string) shown {
	t.Helper()
	out, bad, code := run(append([]string{"config", "show", "-o", "json"}, args...)...)
	var s shown
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		t.Fatalf("exit %d, %s, %v", code, bad, err)
	}
	return s
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "strake.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagBeatsVariableBeatsFileBeatsDefault(t *testing.T) {
	t.Setenv("STRAKE_CONFIG", "")
	t.Setenv("STRAKE_CELL", "")
	file := writeConfig(t, "cell = \"file:1\"\nclass = \"inference\"\n[chunkd]\nlisten = \"127.0.0.1:9\"\ndevice = [\"/a\", \"/b\"]\n[dev]\nchunkds = 4\n")
	want := func(s shown, key, value, from string) {
		t.Helper()
		if got := s.Settings[key]; got != (setting{value, from}) {
			t.Errorf("%s: got %+v, want %q from %s", key, got, value, from)
		}
	}
	want(showConfig(t), "cell", defaultCell, "default")
	s := showConfig(t, "--config", file)
	want(s, "cell", "file:1", file)
	want(s, "class", "inference", file)
	want(s, "chunkd.listen", "127.0.0.1:9", file)
	want(s, "chunkd.device", "[/a,/b]", file)
	want(s, "dev.chunkds", "4", file)
	want(s, "meta.listen", defaultCell, "default")
	t.Setenv("STRAKE_CONFIG", file)
	t.Setenv("STRAKE_CELL", "variable:1")
	t.Setenv("STRAKE_META_SHARD_LENGTH", "16MiB")
	s = showConfig(t)
	want(s, "cell", "variable:1", "STRAKE_CELL")
	want(s, "meta.shard-length", "16MiB", "STRAKE_META_SHARD_LENGTH")
	want(showConfig(t, "--cell", "flag:1"), "cell", "flag:1", "--cell")
}

func TestBadConfigurationIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"sell = \"x\"":                 "unknown keys: sell",
		"[meta]\nlisten-on = \"x\"":    "unknown keys: meta.listen-on",
		"[dev]\nchunkds = \"many\"":    "dev.chunkds",
		"cell = ":                      "read configuration",
		"[meta]\nshard-length = \"x\"": "meta.shard-length",
	} {
		file := writeConfig(t, text)
		_, bad, code := run("config", "check", "--config", file)
		if code != exitFailed || !strings.Contains(bad, want) || !strings.Contains(bad, file) {
			t.Errorf("%q: exit %d, %s", text, code, bad)
		}
	}
	if _, bad, code := run("config", "check", "--config", "/nowhere/x.toml"); code != exitFailed || !strings.Contains(bad, "/nowhere/x.toml") {
		t.Errorf("a missing file: exit %d, %s", code, bad)
	}
}
