package e2e

import (
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/e2e/workload"
)

// TestMetadataLeaderDies kills the leader of three: open volumes go on, and new
// ones can be opened and created soon.
func TestMetadataLeaderDies(t *testing.T) {
	c := start(t, cluster.Options{Meta: 3})
	l := startLoad(t, c, "v")
	l.progress(t, 40, 30*time.Second)
	leader, err := c.Leader(t.Context())
	check(t, err)
	check(t, leader.Kill())
	l.progress(t, 40, 30*time.Second)
	begun := time.Now()
	create(t, c, "w", 256)
	vol := open(t, c, "w", client.OpenOptions{Write: true})
	t.Logf("a new volume was created and opened %.1f s after the leader's death", time.Since(begun).Seconds())
	_, err = vol.WriteAt([]byte("hello"), 4095)
	check(t, err)
	check(t, vol.Flush(t.Context()))
	check(t, vol.Close())
	check(t, leader.Restart())
	check(t, c.WaitHealthy(t.Context()))
	verify(t, c, l.end(t), "v")
}

// TestMetadataOutageStopsNobody takes the only metadata server away for longer
// than a session lives: a writer goes on in what was allocated ahead for it, and
// keeps its volume. A server that was stopped has heard nobody meanwhile.
func TestMetadataOutageStopsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes longer than a session's life")
	}
	for how, end := range map[string]struct{ away, back func(*cluster.Process) error }{
		"killed":  {(*cluster.Process).Kill, func(p *cluster.Process) error { return p.Restart() }},
		"stopped": {(*cluster.Process).Pause, (*cluster.Process).Resume},
	} {
		t.Run(how, func(t *testing.T) {
			c := start(t, cluster.Options{})
			l := startPlan(t, c, workload.Plan{Volume: "v", Seed: 1, First: 1, Blocks: volumeBlocks, Most: 4, Every: 10 * time.Millisecond})
			l.progress(t, 40, 30*time.Second)
			check(t, end.away(c.Metas[0]))
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
				l.progress(t, 20, 10*time.Second)
			}
			check(t, end.back(c.Metas[0]))
			check(t, c.WaitHealthy(t.Context()))
			l.progress(t, 40, 30*time.Second)
			verify(t, c, l.end(t), "v")
		})
	}
}

// TestMetadataLeaderHangs stops the leader of three (SIGSTOP), which keeps its
// connections open: others take over, volumes can be opened, and when it goes on it
// answers nothing of its own from the time before.
func TestMetadataLeaderHangs(t *testing.T) {
	c := start(t, cluster.Options{Meta: 3})
	l := startLoad(t, c, "v")
	l.progress(t, 40, 30*time.Second)
	leader, err := c.Leader(t.Context())
	check(t, err)
	check(t, leader.Pause())
	l.progress(t, 40, 30*time.Second)
	create(t, c, "w", 256)
	vol := open(t, c, "w", client.OpenOptions{Write: true})
	_, err = vol.WriteAt([]byte("hello"), 4095)
	check(t, err)
	check(t, vol.Close())
	check(t, leader.Resume())
	check(t, c.WaitHealthy(t.Context()))
	verify(t, c, l.end(t), "v")
}
