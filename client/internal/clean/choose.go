package clean

import (
	"cmp"
	"slices"

	"strake/internal/layout"
)

// MinGarbage is left alone, in bytes on all shards.
const MinGarbage = 4 << 20

// Least gain of a victim, as a share of what it stores. One that is held comes back
// only later, and what is moved is stored twice until then.
const (
	leastGain = 20 // one twentieth
	heldGain  = 2  // half
)

// Segment is a sealed segment that no snapshot needs, or only such as are likely to go.
type Segment struct {
	ID     layout.SegmentID
	Live   layout.BlockCount // that the map names
	Stored int64             // bytes on all shards, parity included
	Last   layout.Seq        // of its stripes
	Held   bool              // a snapshot needs it for now
}

// Needs is what n blocks take on all shards when they lie in full stripes.
func Needs(n layout.BlockCount, g layout.Geometry) int64 {
	rows := (n + layout.BlockCount(g.K) - 1) / layout.BlockCount(g.K)
	return rows.Bytes() * int64(g.Shards())
}

// Gain is what emptying the segment gives back, less what its live blocks take
// elsewhere; at least 0. A held one gains nothing before half of it is garbage.
func (s *Segment) Gain(g layout.Geometry) int64 {
	gain := max(0, s.Stored-Needs(s.Live, g))
	if s.Held && gain < s.Stored/heldGain {
		return 0
	}
	return gain
}

// Free are the segments that come back as soon as they are emptied.
func Free(list []Segment) (free []Segment) {
	for _, s := range list {
		if !s.Held {
			free = append(free, s)
		}
	}
	return free
}

// Garbage adds up what the segments store in vain, and what they need.
func Garbage(list []Segment, g layout.Geometry) (garbage, needed int64) {
	for i := range list {
		gain := list[i].Gain(g)
		garbage, needed = garbage+gain, needed+list[i].Stored-gain
	}
	return garbage, needed
}

// Goal says how much garbage a volume may have, in thousandths of what it needs:
// above Start it is cleaned, down to Stop. Least, in bytes on all shards, is left
// alone.
type Goal struct{ Start, Stop, Least int64 }

// Goals.
var (
	Busy = Goal{1000, 800, MinGarbage} // while it is written
	Idle = Goal{100, 50, MinGarbage}   // else, and always where space is short
)

// Excess is how much garbage is to be collected; 0: none.
func (o Goal) Excess(garbage, needed int64) int64 {
	if garbage <= max(needed/1000*o.Start, o.Least) {
		return 0
	}
	return garbage - needed/1000*o.Stop
}

// Choose gives the segments of one round, in the order of what they are worth:
// such that they give back excess, or, where that is less, such that most blocks
// are moved. One segment is given at least if any gains enough. g is the geometry
// that relocated blocks get, head the volume's last seq.
func Choose(list []Segment, g layout.Geometry, head layout.Seq, excess int64, most layout.BlockCount) []Segment {
	oldest := head
	var victims []Segment
	for _, s := range list {
		oldest = min(oldest, s.Last)
		if gain := s.Gain(g); gain > 0 && gain >= s.Stored/leastGain {
			victims = append(victims, s)
		}
	}
	span := float64(head-oldest) + 1
	worth := func(s *Segment) float64 {
		cost := s.Live.Bytes() + Needs(s.Live, g)
		return float64(s.Gain(g)) / float64(cost+layout.BlockSize) * (0.5 + float64(head-min(head, s.Last))/span)
	}
	slices.SortFunc(victims, func(a, b Segment) int {
		return cmp.Or(cmp.Compare(worth(&b), worth(&a)), cmp.Compare(a.ID, b.ID))
	})
	var moved layout.BlockCount
	for i := range victims {
		if excess <= 0 || i > 0 && moved+victims[i].Live > most {
			return victims[:i]
		}
		excess -= victims[i].Gain(g)
		moved += victims[i].Live
	}
	return victims
}

// Pages is a map segment: how many of its blocks are pages that the root names.
type Pages struct {
	ID     layout.SegmentID
	Live   layout.BlockCount
	Stored int64
}

// Vacate gives the map segments to move all pages out of, the emptiest first: as
// long as more than half of what map segments store is garbage, and more than least
// bytes, or there are more than most of them.
func Vacate(list []Pages, g layout.Geometry, most int, least int64) (out []layout.SegmentID) {
	var garbage, stored int64
	gain := func(p *Pages) int64 { return max(0, p.Stored-Needs(p.Live, g)) }
	for i := range list {
		garbage, stored = garbage+gain(&list[i]), stored+list[i].Stored
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Pages) int {
		return cmp.Or(cmp.Compare(a.Live*layout.BlockCount(max(b.Stored, 1)), b.Live*layout.BlockCount(max(a.Stored, 1))), cmp.Compare(a.ID, b.ID))
	})
	for i := range list {
		p := &list[i]
		many := len(list)-len(out) > most
		if !many && (garbage <= max(least, stored/2) || gain(p) < p.Stored/4) {
			break
		}
		out = append(out, p.ID)
		garbage, stored = garbage-gain(p), stored-gain(p)
	}
	return out
}
