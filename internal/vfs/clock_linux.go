package vfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// PreciseClock sleeps to within some tens of microseconds. Go's own timers are a
// millisecond late in a process that is idle, because it waits for them in
// epoll_wait, which counts in milliseconds; an emulated device of 100 us would have
// ten times its latency. Each sleep holds a thread for its last two milliseconds.
type PreciseClock struct{}

var _ Clock = PreciseClock{}

// coarse is what is left to the kernel's own sleep.
const coarse = 2 * time.Millisecond

// Now implements Clock.
func (PreciseClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (PreciseClock) Sleep(d time.Duration) {
	end := time.Now().Add(d)
	if d > coarse {
		time.Sleep(d - coarse)
	}
	for left := time.Until(end); left > 0; left = time.Until(end) {
		ts := unix.NsecToTimespec(int64(left))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // a signal ends it early: sleep on
	}
}
