package ctl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRemovedNamesakesByHand removes two volumes of one name, brings one of them back,
// and frees the space of the others.
func TestRemovedNamesakesByHand(t *testing.T) {
	cell := devTest(t, 2)
	ids := func() (list []uint64) {
		t.Helper()
		out, bad, code := run("volume", "ls", "--removed", "-o", "json", "--cell", cell)
		var r struct {
			Volumes []struct {
				ID uint64 `json:"id"`
			} `json:"volumes"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("%v, exit %d: %s%s", err, code, out, bad)
		}
		for _, v := range r.Volumes {
			list = append(list, v.ID)
		}
		return list
	}
	do := func(line string, code int, want string) {
		t.Helper()
		out, bad, got := run(append(strings.Fields(line), "--cell", cell)...)
		if got != code || !strings.Contains(out+bad, want) {
			t.Fatalf("%s: exit %d, want %d with %q:\n%s%s", line, got, code, want, out, bad)
		}
	}
	for range 2 {
		do("volume create v --size 1MiB", 0, "")
		do("snapshot create v@a", 0, "")
		do("volume rm v", 1, "its 1 snapshots and tags")
		do("volume rm v --yes", 0, "removed v")
	}
	two := ids()
	if len(two) != 2 {
		t.Fatalf("removed are %v", two)
	}
	do("volume ls --removed", 0, "REMOVED")
	do("volume undelete v", 1, "--id")
	do(fmt.Sprintf("volume undelete v --id %d", two[1]+1), 1, "no removed volume")
	do(fmt.Sprintf("volume undelete v --id %d", two[0]), 0, "v is back")
	do("volume show v", 0, fmt.Sprint(two[0]))
	do(fmt.Sprintf("volume rm v --now --yes --id %d", two[1]), 0, "removed v")
	if left := ids(); len(left) != 0 {
		t.Errorf("removed are %v", left)
	}
	do("volume rm v --yes", 0, "removed v")
	do("volume rm v --yes", 1, "no volume v")
	do("volume rm v --now", 1, "can't be taken back")
	do("volume rm v --now --yes", 0, "removed v")
	do("volume undelete v", 1, "no removed volume")
	do("volume rm v --now --yes", 1, "no volume v")
	do("volume rm v --yes --id 7", 2, "--now")
}
