package server

import (
	"testing"
	"testing/synctest"
	"time"

	"strake/meta/reconcile"
)

// TestALeaderThatStoodStillBlamesNobody: between two looks of the controllers, a
// second apart, the process is stopped for longer than a session lives.
func TestALeaderThatStoodStillBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(Timing{}.withDefaults())
		c.begin()
		at := func() (now time.Duration) {
			c.with(func(_ *reconcile.Planner, n time.Duration) { now = n })
			return now
		}
		for step, want := range []struct{ passes, counts time.Duration }{
			{time.Second, time.Second}, {9 * time.Second, 0}, {time.Second, time.Second}, {time.Minute, 0}, {500 * time.Millisecond, 500 * time.Millisecond},
		} {
			before := at()
			time.Sleep(want.passes)
			if got := at() - before; got != want.counts {
				t.Errorf("step %d: %v passed and counted as %v, want %v", step, want.passes, got, want.counts)
			}
		}
	})
}
