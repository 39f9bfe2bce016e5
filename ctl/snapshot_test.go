package ctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSnapshotsByHand goes through the verbs of snapshots, tags and clones.
func TestSnapshotsByHand(t *testing.T) {
	cell := devTest(t, 2)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(strings.Repeat(content, 16<<10)), 0o644))
		return path
	}
	one, two := file("one", "abcd"), file("two", "wxyz")
	do := func(line string, wants ...string) string {
		t.Helper()
		out, bad, code := run(append(strings.Fields(line), "--cell", cell)...)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s%s", line, want, out, bad)
			}
		}
		if code != 0 {
			t.Fatalf("%s: exit %d\n%s%s", line, code, out, bad)
		}
		return out
	}
	do("volume create v --size 4MiB")
	do("volume import v " + one)
	do("snapshot create v@one", "created v@one")
	do("volume import v " + two)
	do("snapshot create v@two")
	do("snapshot diff v@one v@two", "0\t65536")
	do("snapshot ls v", "v@one", "v@two")
	do("snapshot ls v --most 1 -o json", `"next": 1`)
	do("volume show v", "2, which alone need")
	do("volume show v@one", "removal frees")
	do("volume export v@one "+filepath.Join(dir, "out"), "exported")
	same(t, filepath.Join(dir, "out"), one)
	do("volume clone v@one w", "a clone of v@one")
	do("volume show w", "v@one")
	do("snapshot show v@one", "w")
	do("volume flatten w --detach", "w")
	do("volume flatten w", "w needs no other volume")
	do("volume show w", "live")
	do("snapshot rollback v@one --yes", "v is what v@one is", "v@before-rollback-3")
	if out := do("volume show v -o json", `"live_bytes": `); strings.Contains(out, `"stored_bytes": 0,`) {
		t.Errorf("after the rollback: %s", out)
	}
	do("volume export v "+filepath.Join(dir, "back"), "exported")
	same(t, filepath.Join(dir, "back"), one)
	do("tag create v@t", "its digest is being computed")
	do("tag ls v", "v@t")
	do("tag hold v@t --by job", "held by 1")
	do("tag verify v@t", "v@t ", "SHA-256 of its bytes") // with its digest, if it stands already
	refusedAll(t, cell, []refusal{
		{"snapshot create v", "invalid-argument", "names a volume"},
		{"snapshot create v@one", "already-exists", "another name"},
		{"snapshot rm v@one", "invalid-argument", "--yes"},
		{"snapshot rm v@t --yes", "busy", "job"},
		{"snapshot rollback v@one", "invalid-argument", "--yes"},
		{"snapshot show v@none", "not-found", "strake snapshot ls v"},
		{"volume clone v@one w", "already-exists", "another name"},
		{"volume rm v --yes", "busy", "job"},
	})
	do("tag release v@t --by job", "held by 0")
	do("snapshot rm v@one --yes", "removed v@one")
	var list struct {
		Snapshots []struct{ Name, Kind string }
	}
	must(t, json.Unmarshal([]byte(do("snapshot ls v -o json")), &list))
	if len(list.Snapshots) != 3 {
		t.Errorf("%+v", list)
	}
}

// same compares a volume's first bytes with a file's.
func same(t *testing.T, got, want string) {
	t.Helper()
	a, err := os.ReadFile(got)
	must(t, err)
	b, err := os.ReadFile(want)
	must(t, err)
	if string(a[:len(b)]) != string(b) {
		t.Errorf("%s does not begin as %s", got, want)
	}
}
