package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"strake/e2e/cluster"
	"strake/e2e/history"
	"strake/e2e/workload"
)

const (
	fighters = 3  // clients that take the volume from each other
	fights   = 90 // operations of all of them
)

// TestBlocksAreLinearizableUnderLeaseHandOver has clients take a volume from each
// other by force, read and write single blocks durably, and lose it, while servers
// are killed and stand still.
func TestBlocksAreLinearizableUnderLeaseHandOver(t *testing.T) {
	c := start(t, cluster.Options{})
	create(t, c, "v", volumeBlocks)
	notes := make([]lines, fighters)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for n := range notes {
		f := workload.Fighter{Cell: dial(t, c), Volume: "v", Number: n, Out: &notes[n]}
		all.Go(func() {
			if err := f.Fight(ctx, 5); err != nil {
				t.Error(err) // P3
			}
		})
	}
	ended := func() (n int) {
		for i := range notes {
			n += strings.Count(notes[i].String(), "done ")
		}
		return n
	}
	for _, victim := range c.Chunkds[:2] {
		from := ended()
		eventually(t, "10 more operations", time.Minute, func() bool { return ended() >= from+10 })
		check(t, victim.Kill())
		from = ended()
		eventually(t, "10 more operations without a server", time.Minute, func() bool { return ended() >= from+10 })
		check(t, victim.Restart())
	}
	from := ended()
	check(t, c.Chunkds[2].Pause())
	eventually(t, "10 more operations while a server stands still", time.Minute, func() bool { return ended() >= from+10 })
	check(t, c.Chunkds[2].Resume())
	eventually(t, "enough operations to mean anything", 2*time.Minute, func() bool { return ended() >= fights/2 })
	cancel()
	all.Wait()
	var log history.Log
	for n := range notes {
		log.Add(n, notes[n].String())
	}
	if err := log.Check(time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations are linearizable", log.Len())
}
