package ctl

import (
	"encoding/json"
	"sync"
	"testing"

	"strake/client"
	"strake/internal/vfs"
)

// TestAServerThatJoinsIsFilledByARebalance: it gets new segments without being
// asked for, and a rebalance gives it sealed ones until fills are within 5 %.
func TestAServerThatJoinsIsFilledByARebalance(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a cell of eight servers is filled and rebalanced; without -short it runs")
	}
	var mu sync.Mutex
	disks := map[string]*vfs.Mem{}
	c := startUpkeepCell(t, 6, "", func(dir string) (vfs.FS, error) {
		mu.Lock()
		defer mu.Unlock()
		if disks[dir] == nil {
			disks[dir] = vfs.NewMem(vfs.MemOptions{Capacity: 320 << 20})
		}
		return disks[dir], nil
	})
	rebalance := func(verb string) (r client.RebalanceInfo) {
		t.Helper()
		out, bad, code := run("rebalance", verb, "--cell", c.address, "-o", "json")
		if code != 0 {
			t.Fatalf("rebalance %s: exit %d: %s%s", verb, code, out, bad)
		}
		must(t, json.Unmarshal([]byte(out), &r))
		return r
	}
	old := c.filled("old", 96<<20)
	c.join()
	c.join()
	fresh := c.filled("fresh", 16<<20)
	c.eventually("the joined servers hold new segments", func() string {
		r := rebalance("status")
		for _, d := range r.Devices {
			if len(r.Devices) < 8 || d.HeldBytes == 0 {
				return "not all of them yet"
			}
		}
		return ""
	})
	before := rebalance("status")
	if before.Running || before.SpreadPermille <= before.GoalPermille {
		t.Fatalf("before: %+v", before)
	}
	rebalance("start")
	c.eventually("devices are even", func() string {
		if r := rebalance("status"); r.Running || r.SpreadPermille > r.GoalPermille {
			out, _ := json.Marshal(r)
			return string(out)
		}
		return ""
	})
	if r := rebalance("stop"); r.MovedShards == 0 || r.MovedBytes == 0 {
		t.Errorf("after: %+v", r)
	}
	c.check("old", old)
	c.check("fresh", fresh)
	if r, st := c.status(); st.SegmentsDegraded != 0 || r.Failed != 0 {
		t.Errorf("rebuild %v, status %v", r, st)
	}
}
