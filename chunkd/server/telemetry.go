package server

import (
	"sync"
	"sync/atomic"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/proto/frame"
)

const (
	// maxVolumes bounds the volumes that are counted apart; the others count as 0.
	maxVolumes = 4096
	// sloMinutes is how far back objectives are looked at.
	sloMinutes = 60
	shortSLO   = 5
)

// VolumeCounters count a volume's requests that succeeded.
type VolumeCounters struct {
	Reads, Writes, ReadBytes, WroteBytes atomic.Uint64
	times                                [mclock.Buckets]atomic.Uint64 // from receipt to reply, flushes too
	time                                 atomic.Int64                  // their sum
}

func (c *VolumeCounters) took(d time.Duration) {
	c.times[mclock.BucketOf(d)].Add(1)
	c.time.Add(int64(d))
}

// Times is how long its reads, writes and flushes took from receipt to reply.
func (c *VolumeCounters) Times() (h mclock.Histogram) {
	for i := range h.Counts {
		h.Counts[i] = c.times[i].Load()
	}
	h.Sum = time.Duration(c.time.Load())
	return h
}

// volumes gives each volume its counters.
type volumes struct {
	mu  sync.Mutex
	all map[layout.VolumeID]*VolumeCounters // guarded by mu
}

// of finds or makes a volume's counters.
func (v *volumes) of(id layout.VolumeID) *VolumeCounters {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[layout.VolumeID]*VolumeCounters{}
	}
	c := v.all[id]
	if c == nil && len(v.all) >= maxVolumes {
		id = 0
		c = v.all[id]
	}
	if c == nil {
		c = &VolumeCounters{}
		v.all[id] = c
	}
	return c
}

// each visits all volumes in no order.
func (v *volumes) each(visit func(layout.VolumeID, *VolumeCounters)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.all {
		visit(id, c)
	}
}

// slos hold the objectives of classes and how they are kept.
type slos [256]slo

type slo struct {
	goal atomic.Pointer[qos.SLO] // nil: none

	mu      sync.Mutex
	minutes [sloMinutes]Kept // guarded by mu; by minute modulo the length
	minute  int64            // guarded by mu: the newest
	total   Kept             // guarded by mu
}

// Kept counts requests that an objective is for, and those that took longer or failed.
type Kept struct{ Judged, Late uint64 }

func (k *Kept) add(o Kept) { k.Judged, k.Late = k.Judged+o.Judged, k.Late+o.Late }

// judge counts a request of n bytes that was received then and is answered now, in
// vain if it failed.
func (s *slo) judge(n int, received, now time.Time, failed bool) {
	goal := s.goal.Load()
	if goal == nil || goal.Bytes > 0 && int64(n) > goal.Bytes {
		return
	}
	one := Kept{Judged: 1}
	if failed || now.Sub(received) > goal.P99 {
		one.Late = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now.Unix() / 60)
	s.minutes[s.minute%sloMinutes].add(one)
	s.total.add(one)
}

// turn clears the minutes that passed since the newest. mu is held.
func (s *slo) turn(minute int64) {
	if minute-s.minute >= sloMinutes {
		s.minutes, s.minute = [sloMinutes]Kept{}, minute
	}
	for s.minute < minute {
		s.minute++
		s.minutes[s.minute%sloMinutes] = Kept{}
	}
}

// kept sums up the last minutes, the present one among them.
func (s *slo) kept(minutes int, now time.Time) (sum Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now.Unix() / 60)
	for i := range int64(minutes) {
		if m := s.minute - i; m >= 0 {
			sum.add(s.minutes[m%sloMinutes])
		}
	}
	return sum
}

// SetSLO gives a class its objective; the zero value takes it away.
func (s *Server) SetSLO(class layout.Class, goal qos.SLO) {
	if goal == (qos.SLO{}) {
		s.slos[class].goal.Store(nil)
		return
	}
	s.slos[class].goal.Store(&goal)
}

// SLOStats is how a class's objective is kept.
type SLOStats struct {
	Class            layout.Class
	Goal             qos.SLO
	Short, Hour, All Kept // of 5 minutes, of an hour, since the start
}

// SLOs gives the classes that have an objective.
func (s *Server) SLOs(now time.Time) (list []SLOStats) {
	for i := range s.slos {
		o := &s.slos[i]
		if goal := o.goal.Load(); goal != nil {
			list = append(list, SLOStats{layout.Class(i), *goal, o.kept(shortSLO, now), o.kept(sloMinutes, now), o.all()})
		}
	}
	return list
}

func (s *slo) all() Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// EachVolume visits the volumes that had requests, in no order; 0 stands for those
// beyond a bound.
func (s *Server) EachVolume(visit func(layout.VolumeID, *VolumeCounters)) { s.volumes.each(visit) }

// judge holds a request that is answered now against its class's objective: reads,
// appends (durable ones with their sync) and flushes. What the server refuses or fails
// to do has missed it; what the caller asked wrongly, or of the wrong server, is not
// judged, nor is what no user of the class asked for.
func (c *conn) judge(r *request, err error) {
	if r.Kind != frame.Read && r.Kind != frame.Append && r.Kind != frame.Sync || r.service() {
		return
	}
	n := r.Payload
	if r.Kind == frame.Read {
		n = r.read.Bytes()
	}
	switch now := time.Now(); errs.KindOf(err) {
	case errs.OK:
		c.srv.slos[r.Class].judge(n, r.received, now, false)
		if v := c.volumeOf(r); v != nil {
			v.took(now.Sub(r.received))
		}
	case errs.Deadline, errs.Overloaded, errs.Unavailable, errs.NoSpace, errs.Corrupt, errs.Internal:
		c.srv.slos[r.Class].judge(n, r.received, now, true)
	}
}

// volumeOf gives the counters of a request's volume; nil: its token was not given here.
func (c *conn) volumeOf(r *request) *VolumeCounters {
	if r.Token == 0 || int(r.Token) > len(c.grants) {
		return nil
	}
	return c.grants[r.Token-1].counters
}

// count notes a request on n bytes that succeeded.
func (c *conn) count(r *request, n int, write bool) {
	v := c.volumeOf(r)
	if v == nil {
		return
	}
	if write {
		v.Writes.Add(1)
		v.WroteBytes.Add(uint64(n))
		return
	}
	v.Reads.Add(1)
	v.ReadBytes.Add(uint64(n))
}
