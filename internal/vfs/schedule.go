package vfs

import (
	"sync"
	"time"
)

// Clock is the time that Shape lives in.
type Clock interface {
	Now() time.Time
	Sleep(d time.Duration)
}

// systemClock is package time, which testing/synctest replaces.
type systemClock struct{}

func (systemClock) Now() time.Time        { return time.Now() }
func (systemClock) Sleep(d time.Duration) { time.Sleep(d) }

// maxOvershoot bounds how much oversleeping is made good.
const maxOvershoot = 2 * time.Millisecond

// schedule is the one timeline of a device. A request takes the device for
// max(1/IOPS, bytes/rate) and is answered Latency after its turn ends, so that
// rates are shared and latencies overlap.
type schedule struct {
	spec  ShapeSpec
	clock Clock

	mu     sync.Mutex // guards all below; not held while sleeping
	next   time.Time  // the device is taken until then
	credit time.Duration
}

// reserve books a request and tells when its turn on the device ends.
func (s *schedule) reserve(bytes, rate int64) time.Time {
	cost := max(costOf(1, s.spec.IOPS), costOf(bytes, rate))
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.clock.Now().Add(-s.credit)
	s.credit = 0
	if s.next.After(start) {
		start = s.next
	}
	s.next = start.Add(cost)
	return s.next
}

// wait sleeps until t. What it oversleeps, because timers are coarse, is given
// to the next request, else a lone caller would get less than the rate.
func (s *schedule) wait(t time.Time) {
	d := t.Sub(s.clock.Now())
	if d <= 0 {
		return
	}
	s.clock.Sleep(d)
	over := min(s.clock.Now().Sub(t), maxOvershoot)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credit = max(s.credit, over)
}

// costOf is the time that so many units take at a rate per second; 0 is no limit.
func costOf(units, rate int64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(units) / float64(rate) * float64(time.Second))
}
