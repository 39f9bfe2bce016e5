package vfs

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestAPreciseClockNeverWakesEarly, and knows nothing of what it must not promise:
// how late it is depends on the machine, and is told for people.
func TestAPreciseClockNeverWakesEarly(t *testing.T) {
	c := NewPreciseClock()
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 350 * time.Microsecond, 3 * time.Millisecond} {
		var late []time.Duration
		for range 20 {
			began := time.Now()
			c.Sleep(d)
			late = append(late, time.Since(began)-d)
		}
		if least := slices.Min(late); least < 0 {
			t.Errorf("a sleep of %v ended %v early", d, -least)
		}
		slices.Sort(late)
		t.Logf("%v: late by %v in the median", d, late[len(late)/2])
	}
}

// TestSleepersHoldNoThreads: else a device that several wait for would take all
// processors of the Go scheduler, and what could run waits until they are taken back.
func TestSleepersHoldNoThreads(t *testing.T) {
	const sleepers = 64
	threads := func() int {
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Skip("no list of threads here")
		}
		return len(list)
	}
	before := threads()
	c, all := NewPreciseClock(), sync.WaitGroup{}
	for range sleepers {
		all.Go(func() {
			for range 8 {
				c.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	if more := threads() - before; more > sleepers/4 {
		t.Errorf("%d sleepers took %d threads more", sleepers, more)
	}
	if n := len(c.idle); n == 0 || n > idleTimers {
		t.Errorf("%d timers are kept for the next, want 1 to %d", n, idleTimers)
	}
}
