package mclock

import "time"

const (
	firstWidth = 16
	// congested is how many times as long as alone a request may take whatever the
	// target. A device that serves one at a time for s and answers l later is busy
	// with (s+l)/s requests, and with twice as many they take 2(s+l), twice as
	// long as alone: so it is always kept busy, and never more than twice so.
	congested = 2
	// patience is how many targets longer than alone a request may take while a
	// class has a target. It tells for long pieces, of which one keeps the device
	// as busy as two.
	patience = 3
	// roundMin is the fewest completions that the width is judged by.
	roundMin = 8
	// probeEvery is how often, while saturated, a few requests run alone to see
	// what the device takes without a queue. probeRequests is how many.
	probeEvery    = 10 * time.Second
	probeRequests = 8
	// inUse is how long after its last request a class's target still counts.
	inUse = 10 * time.Second
)

// width adapts how many requests are at the device. It is judged in rounds of
// completions: cut by a quarter when most were slower than allowed, one more when
// most would not be slower with another beside them, and others wait.
type width struct {
	least, most int
	now         int
	peak        int // most at the device at once in this round
	// Completions of this round: all, those slower than allowed, and those that
	// one more beside them would not make so.
	seen, slow, roomy int
	wanted            bool
	probe             int // requests that are still to run alone
	probed            time.Duration
	lone              *Request // that runs with nothing beside so far
}

// allows tells how many requests may be at the device.
func (w *width) allows() int {
	if w.probe > 0 {
		return 1
	}
	return w.now
}

// saturated notes that requests wait because the width is used up.
func (w *width) saturated(now time.Duration) {
	w.wanted = true
	if now-w.probed >= probeEvery {
		w.probed, w.probe = now, probeRequests
	}
}

// began notes a dispatch; n are at the device with it.
func (w *width) began(r *Request, n int) {
	w.peak = max(w.peak, n)
	w.lone = nil
	if n == 1 {
		w.lone = r
	}
}

// allowed is how long a request may take: target, or what a busy device needs.
// quick tells that the target is a class's.
func (l *latency) allowed(target time.Duration, quick bool) time.Duration {
	busy := congested * l.alone
	if quick {
		busy = min(busy, l.alone+patience*target)
	}
	return max(target, busy)
}

// done judges a completion by what it was allowed.
func (w *width) done(r *Request, took, allowed time.Duration, lat *latency) {
	if w.lone == r {
		w.lone = nil
		smooth(&lat.alone, took)
	}
	if w.probe > 0 {
		w.probe--
		return
	}
	w.seen++
	if took > allowed {
		w.slow++
	} else if took+r.cost <= allowed {
		w.roomy++
	}
	if w.seen < max(roundMin, w.now) {
		return
	}
	switch {
	case w.slow*2 > w.seen:
		w.now = max(w.least, min(w.now, w.peak)*3/4)
	case w.roomy*2 > w.seen && w.wanted:
		w.now = min(w.most, w.now+1)
	}
	w.seen, w.slow, w.roomy, w.peak, w.wanted = 0, 0, 0, 0, false
}
