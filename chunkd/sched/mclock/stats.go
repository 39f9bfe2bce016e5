package mclock

import (
	"math/bits"
	"time"
)

// Buckets is the length of a Histogram: two for each doubling from 1 µs on.
const Buckets = 56

// Histogram counts durations. Bucket i ends at BucketEnd(i); the last has no end.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    time.Duration
}

// add counts a duration.
func (h *Histogram) add(d time.Duration) {
	h.Counts[BucketOf(d)]++
	h.Sum += d
}

// BucketOf is the bucket of a duration.
func BucketOf(d time.Duration) int {
	us := uint64(max(d, 0)) / uint64(time.Microsecond)
	if us < 2 {
		return int(us)
	}
	n := bits.Len64(us) // 2^(n-1) <= us < 2^n
	return min(2*(n-1)+int(us>>(n-2)&1), Buckets-1)
}

// BucketEnd is the end of a bucket, which does not belong to it.
func BucketEnd(i int) time.Duration {
	if i < 2 {
		return time.Duration(i+1) * time.Microsecond
	}
	end := time.Microsecond << (i/2 + 1)
	if i%2 == 0 {
		end -= end / 4
	}
	return end
}

// Count is the number of durations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile is the end of the bucket that holds the q-th part, 0 when empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	left := uint64(q * float64(h.Count()))
	for i, n := range h.Counts {
		if n > left {
			return BucketEnd(i)
		}
		left -= n
	}
	return 0
}

// FlowStats is what a flow has been given since it was made.
type FlowStats struct {
	Key
	Params                Params
	Reads, Writes         uint64
	ReadBytes, WroteBytes uint64
	Reserved              uint64        // dispatched by reservation
	Late                  uint64        // refused because of their deadline
	Refused               uint64        // refused because a queue was full
	Gated                 uint64        // had to wait at the gate
	GateTime              time.Duration // that those waited there; Queue begins after it
	Throttled             time.Duration
	DeviceTime            time.Duration // the cost of what was served
	Waiting, Running      int
	AtGate                int
	HeldBytes             int64
	QueuedBytes           int64
	Queue, Service        Histogram
}

// Stats is the state of a core.
type Stats struct {
	Width, Running, Waiting int
	Quantum                 [2]int // of reads and writes
	Target                  time.Duration
	Cost                    Cost
	Lessons                 uint64        // that Cost was learnt from, while the device was saturated
	Taught                  time.Duration // when the last one ended, in the core's time
	LessonAge               time.Duration // since then; the shell's to fill in
	Refused                 uint64        // because there were too many flows
	Flows                   []FlowStats
}

// coreStat and flowStat are the counters behind Stats.
type coreStat struct {
	refused, lessons uint64
	taught           time.Duration
}

type flowStat struct {
	reads, writes, readBytes, wroteBytes uint64
	reserved, late, refused, gated       uint64
	throttled, deviceTime, gateTime      time.Duration
	queue, service                       Histogram
}

func (s *flowStat) done(r *Request, took time.Duration) {
	if r.Write {
		s.writes += uint64(r.ops())
		s.wroteBytes += uint64(r.Bytes)
	} else {
		s.reads += uint64(r.ops())
		s.readBytes += uint64(r.Bytes)
	}
	s.deviceTime += r.cost
	s.service.add(took)
}

// throttled starts and ends the time that a flow waits for its limit.
func (f *flow) throttled(now time.Duration, yes bool) {
	if f.throttledFrom >= 0 {
		f.stat.throttled += now - f.throttledFrom
		f.throttledFrom = -1
	}
	if yes {
		f.throttledFrom = now
	}
}

// Stats gives a copy of all figures, flows in the order in which they came.
func (c *Core) Stats() Stats {
	s := Stats{Width: c.width.now, Running: c.running, Waiting: c.waiting, Quantum: c.quanta, Target: c.target, Cost: c.costs.line(),
		Lessons: c.stat.lessons, Taught: c.stat.taught,
		Refused: c.stat.refused, Flows: make([]FlowStats, 0, len(c.order))}
	for _, f := range c.order {
		t := &f.stat
		s.Flows = append(s.Flows, FlowStats{Key: f.key, Params: f.params, Reads: t.reads, Writes: t.writes, ReadBytes: t.readBytes,
			WroteBytes: t.wroteBytes, Reserved: t.reserved, Late: t.late, Refused: t.refused, Gated: t.gated, GateTime: t.gateTime, Throttled: t.throttled,
			DeviceTime: t.deviceTime, Waiting: f.queue.n, Running: f.running, AtGate: f.gate.n, HeldBytes: f.held, QueuedBytes: f.queuedBytes,
			Queue: t.queue, Service: t.service})
	}
	return s
}

// Load is the number of requests that run or wait.
func (c *Core) Load() int { return c.running + c.waiting }

// Free tells whether a request that comes now would be served at once.
func (c *Core) Free(now time.Duration, k Key) bool {
	if c.waiting > 0 || c.running >= c.width.allows() {
		return false
	}
	f := c.flows[k]
	return f == nil || f.params.Limit.IsZero() || f.limit.at() <= now
}
