package extent

import (
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Apply maps the header's ranges. Headers come in seq order without gaps; one
// at or below Applied is already in the map and is passed over. No page is ever
// needed, so a write never waits for the map: where the old place of a block is
// not at hand, the block stays unsettled. An error is a bug of the caller and
// leaves the map as it was.
//
// A relocation stripe needs no rule of its own, because it takes its seq under
// the map lock and holds only blocks that Current confirmed under that lock. So
// at its seq each block has the content that the stripe brings: all lower seqs
// are in the map, and every later write has a higher seq and hides it again.
// Replay in seq order therefore gives the same map, and a cut below the stripe
// leaves its sources in place.
func (m *Map) Apply(h *stripe.Header) error {
	switch {
	case h.Flags&stripe.MapPage != 0:
		return errs.New(errs.InvalidArgument, "apply stripe header", "stripe %d holds map pages", h.Seq)
	case h.Seq <= m.applied:
		return nil
	case h.Seq != m.applied+1:
		return errs.New(errs.Internal, "apply stripe header", "seq %d after %d", h.Seq, m.applied)
	}
	l := m.active()
	add(&l.delta, uint64(h.Segment), 0)
	p := placeOf(h)
	for _, r := range h.Ranges {
		if r.Kind == stripe.Write {
			p.start, p.count = uint64(r.Start), r.Count
			m.put(p)
			p.index += uint16(r.Count)
			continue
		}
		m.put(run{start: uint64(r.Start), count: r.Count})
	}
	m.applied = h.Seq
	l.headers++
	l.bytes += int64(h.EncodedLen())
	return nil
}

// placeOf is the place of a stripe's first payload block.
func placeOf(h *stripe.Header) run {
	return run{segment: uint64(h.Segment), offset: uint32(h.Offset / layout.BlockSize),
		unit: uint16(h.Shape.UnitBlocks()), mask: uint16(h.Shape.Data)}
}

// put maps p in the active layer and keeps the live counts.
func (m *Map) put(p run) {
	l := m.active()
	m.pieces = append(m.pieces[:0], before())
	at := l.touch(p.start)
	l.walkAt(at, p.start, p.end(), func(old *run, lo, hi uint64) {
		if old == nil {
			m.beneath(p, lo, hi)
			return
		}
		l.count(old.segment, -int64(hi-lo))
		m.piece(p, lo, hi, old.unsettled)
	})
	l.count(p.segment, int64(p.count))
	l.replace(at, p.start, p.end(), m.pieces)
}

func (m *Map) piece(p run, lo, hi uint64, unsettled bool) {
	p = p.clip(lo, hi)
	p.unsettled = unsettled
	m.pieces = push(m.pieces, p)
}

// beneath counts what p hides in [lo, hi), where the active layer has nothing.
func (m *Map) beneath(p run, lo, hi uint64) {
	l, f := m.active(), m.frozen()
	if f == nil {
		m.overBase(p, lo, hi)
		return
	}
	f.walk(lo, hi, func(old *run, lo, hi uint64) {
		if old == nil {
			m.overBase(p, lo, hi)
			return
		}
		l.count(old.segment, -int64(hi-lo))
		m.piece(p, lo, hi, false)
	})
}

// overBase settles [lo, hi) at once when the leaf is at hand and the range is
// small enough to look at under the lock.
func (m *Map) overBase(p run, lo, hi uint64) {
	l := m.active()
	if hi-lo <= layout.MaxStripeBlocks {
		if leaf := m.find(&m.extents, lo, 0); !leaf.missing() && leaf.hi >= hi {
			l.subtract(leaf.node, lo, hi)
			m.piece(p, lo, hi, false)
			return
		}
	}
	l.unsettled += hi - lo
	m.piece(p, lo, hi, true)
}
