package inprocess

import (
	"fmt"
	"testing"
	"time"
)

// TestSpaceComesBackWhileAServerIsAway removes a volume of a cell that has no server to
// spare while one of them is down. What that one still has is a leftover to it when it
// is back.
func TestSpaceComesBackWhileAServerIsAway(t *testing.T) {
	timing := quick()
	timing.DeleteAfter = 200 * time.Millisecond
	c := Start(t, Options{Chunkds: 3, Timing: timing})
	cell, v := volume(t, c, 16*mib, 2, 1)
	write(t, v, pattern(1, 16*mib), 0)
	closed(t, v)
	c.Chunkds[2].Kill()
	if err := cell.RemoveVolume(t.Context(), "v", true); err != nil {
		t.Fatal(err)
	}
	allGone(t, c, cell)
	for _, s := range c.Chunkds[:2] {
		if list := shardsOn(t, s); len(list) > 0 {
			t.Errorf("%q are left on server %d", list, s.ID())
		}
	}
	if len(shardsOn(t, c.Chunkds[2])) == 0 {
		t.Fatal("the server that was away has no shard: the test tests nothing")
	}
	c.Chunkds[2].Restart()
	c.Eventually("the leftovers go", func() error {
		if list := shardsOn(t, c.Chunkds[2]); len(list) > 0 {
			return fmt.Errorf("%q are left", list)
		}
		return nil
	})
}
