package extent

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// makeRoot makes the root page, which is a batch of its own, and the record.
func (c *Checkpoint) makeRoot(pages *[]PageWrite, place Placer) error {
	page := rootPage{extents: *c.extents, live: *c.live}
	for p := (spot{}); c.segments.at(p) != nil; p = c.segments.next(p) {
		s := c.segments.at(p)
		if d := c.m.frozen().delta.find(s.segment); s.n == 0 && d != nil && d.forget {
			continue
		}
		if s.n < 0 {
			return bad("map segment %d would have %d live blocks", s.segment, s.n)
		}
		page.segments = append(page.segments, row{colID: s.segment, colLive: uint64(s.n)})
	}
	if len(page.segments) > MaxMapSegments {
		return errs.New(errs.TooLarge, "make map root", "%d map segments, at most %d", len(page.segments), MaxMapSegments).
			WithHint("vacate the emptiest map segments")
	}
	c.add(page.encode(c.covers), KindRoot, 0, uint64(c.covers))
	c.place(pages, place)
	if c.err != nil {
		return c.err
	}
	c.rootRef = (*pages)[len(*pages)-1].Ref
	c.root = encodeRoot(c.covers, c.rootRef)
	c.listSegments(page.segments)
	return nil
}

// listSegments keeps the table of the root page and finds who is out of it.
func (c *Checkpoint) listSegments(rows []row) {
	c.segments = sorted[change]{}
	for _, r := range rows {
		add(&c.segments, r[colID], int64(r[colLive]))
		if id := layout.SegmentID(r[colID]); r[colLive] == 0 && id != c.rootRef.Segment {
			c.retiredMap = append(c.retiredMap, id)
		}
	}
	add(&c.segments, uint64(c.rootRef.Segment), 0)
}

// Committed says that c's root was recorded: it is the map's root from now on.
func (m *Map) Committed(c *Checkpoint) {
	if m.checkpoint != c || !c.Done() {
		panic("extent: Committed without a finished checkpoint")
	}
	m.extents.top, m.live.top = *c.extents, *c.live
	m.segments, m.root, m.covers = c.segments, c.rootRef, c.covers
	m.layers = m.layers[:1]
	for _, ref := range c.freed {
		m.cache.drop(ref)
	}
	m.checkpoint = nil
}

// Aborted says that c's root was not and never will be recorded; its changes
// wait for the next checkpoint.
func (m *Map) Aborted(c *Checkpoint) {
	if m.checkpoint != c {
		panic("extent: Aborted without a checkpoint")
	}
	for _, ref := range c.placed {
		m.cache.drop(ref)
		add(&m.segments, uint64(ref.Segment), 0)
	}
	for p := (spot{}); c.vacate.at(p) != nil; p = c.vacate.next(p) {
		add(&m.vacate, c.vacate.at(p).segment, 0)
	}
	top, below := m.layers[0], m.layers[1]
	below.absorb(top)
	m.layers = []*layer{below}
	m.checkpoint = nil
}

// absorb puts a newer layer into the one right below it. What the newer one
// hides of the older is counted already; what the older hides of the base is
// now hidden by the newer, settled or not as before.
func (l *layer) absorb(newer *layer) {
	var pieces []run
	for p := (spot{}); newer.runs.at(p) != nil; p = newer.runs.next(p) {
		r := *newer.runs.at(p)
		pieces = append(pieces[:0], before())
		at := l.touch(r.start)
		l.walkAt(at, r.start, r.end(), func(old *run, lo, hi uint64) {
			piece := r.clip(lo, hi)
			if old != nil {
				piece.unsettled = old.unsettled
			} else if piece.unsettled {
				l.unsettled += hi - lo
			}
			pieces = push(pieces, piece)
		})
		l.replace(at, r.start, r.end(), pieces)
	}
	for p := (spot{}); newer.delta.at(p) != nil; p = newer.delta.next(p) {
		d := *newer.delta.at(p)
		if e := add(&l.delta, d.segment, d.n); d.forget {
			e.forget = true
		}
	}
	l.headers += newer.headers
	l.bytes += newer.bytes
}
