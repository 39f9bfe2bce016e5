package containers

import (
	"encoding/json"
	"maps"
	"testing"

	"strake/e2e/container"
)

// TestRollingUpgradeAndBack starts a cell of the previous commit's build, takes
// its servers to this one's one by one under a workload of this build, and back
// again. The order is the documented one: metadata servers first, the leader last
// of them, then chunk servers; back, the other way round. Each step runs both
// builds side by side.
func TestRollingUpgradeAndBack(t *testing.T) {
	opts := container.Options{Images: images(t), Chunkds: 6}
	now := opts.Images.Strake
	previous, commit, err := stage.engine.BuildPrevious(t.Context(), stage.dir)
	if err != nil {
		t.Skipf("*** SKIPPED: no build of the previous commit: %v ***", err)
	}
	opts.Images.Strake = previous
	c := stage.engine.Start(t, seed(), opts)
	c.Note("the previous build is of commit %s", commit)
	before := formats(t, c)
	l := startLoad(t, c)
	metas := upgradeOrder(c)
	for _, n := range append(metas, c.Chunkds...) {
		must(t, n.Replace(t.Context(), now))
		c.WaitUp()
		l.progress(20)
	}
	if after := formats(t, c); !maps.Equal(before, after) {
		t.Logf("*** the way back is not tested: this build writes formats that the previous one does not read: %v, before %v ***", after, before)
		l.end()
		return
	}
	metas = upgradeOrder(c)
	for i := len(c.Chunkds) - 1; i >= 0; i-- {
		must(t, c.Chunkds[i].Replace(t.Context(), previous))
		c.WaitUp()
		l.progress(20)
	}
	for _, n := range metas {
		must(t, n.Replace(t.Context(), previous))
		c.WaitUp()
		l.progress(20)
	}
	l.end()
}

// upgradeOrder gives the metadata servers, the leader last.
func upgradeOrder(c *container.Cell) []*container.Node {
	leader := c.Leader()
	var list []*container.Node
	for _, m := range c.Metas {
		if m != leader {
			list = append(list, m)
		}
	}
	return append(list, leader)
}

// formats gives the versions of what a cell's first server writes; none for a
// build that does not tell.
func formats(t *testing.T, c *container.Cell) map[string]int {
	t.Helper()
	out, err := c.Run(t.Context(), "version", "-o", "json")
	must(t, err)
	var v struct {
		Formats map[string]int `json:"formats"`
	}
	must(t, json.Unmarshal([]byte(out), &v))
	return v.Formats
}
