package vfs

import (
	"slices"
	"testing"
	"time"
)

// TestAPreciseClockNeverWakesEarly, and knows nothing of what it must not promise:
// how late it is depends on the machine, and is told for people.
func TestAPreciseClockNeverWakesEarly(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 350 * time.Microsecond, 3 * time.Millisecond} {
		var late []time.Duration
		for range 20 {
			began := time.Now()
			PreciseClock{}.Sleep(d)
			late = append(late, time.Since(began)-d)
		}
		if least := slices.Min(late); least < 0 {
			t.Errorf("a sleep of %v ended %v early", d, -least)
		}
		slices.Sort(late)
		t.Logf("%v: late by %v in the median", d, late[len(late)/2])
	}
}
