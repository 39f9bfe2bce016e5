package extent

import "strake/internal/layout"

// SegmentLive is how many blocks of a segment the map names.
type SegmentLive struct {
	Segment layout.SegmentID
	Blocks  uint64
}

// Live is the number of live blocks of a data segment: exact when Unsettled is
// 0, else an upper bound.
func (m *Map) Live(s layout.SegmentID) (blocks uint64, need []PageRef) {
	leaf := m.find(&m.live, uint64(s), 0)
	if leaf.missing() {
		return 0, []PageRef{leaf.ref}
	}
	var n int64
	if i := leaf.node.search(uint64(s)); i >= 0 && leaf.node.get(i, colID) == uint64(s) {
		n = int64(leaf.node.get(i, colLive))
	}
	for _, l := range m.layers {
		if c := l.delta.find(uint64(s)); c != nil {
			n += c.n
		}
	}
	return uint64(n), nil
}

// Segments appends up to most data segments with id > after, in id order, to
// dst. Segments without a live block are listed until Forget.
func (m *Map) Segments(after layout.SegmentID, most int, dst []SegmentLive) ([]SegmentLive, []PageRef) {
	for at := uint64(after) + 1; most > 0 && at != 0; most-- {
		s, n, need := m.nextSegment(at)
		switch {
		case need != nil:
			return dst, need
		case s == 0:
			return dst, nil
		}
		dst = append(dst, SegmentLive{layout.SegmentID(s), n})
		at = s + 1
	}
	return dst, nil
}

// nextSegment gives the first segment from id at on; 0 for none.
func (m *Map) nextSegment(at uint64) (segment, blocks uint64, need []PageRef) {
	for at != keyEnd {
		leaf := m.find(&m.live, at, 0)
		if leaf.missing() {
			return 0, 0, []PageRef{leaf.ref}
		}
		next := leaf.hi
		i := leaf.node.search(at-1) + 1
		if i < leaf.node.rows {
			next = leaf.node.get(i, colID)
		}
		found, forget := i < leaf.node.rows, false
		for _, l := range m.layers {
			if c := l.delta.at(l.delta.seek(at)); c != nil && (c.segment < next || c.segment == next) {
				next, found = c.segment, true
			}
		}
		if !found {
			at = next
			continue
		}
		n, _ := m.Live(layout.SegmentID(next))
		for _, l := range m.layers {
			if c := l.delta.find(next); c != nil && c.forget {
				forget = true
			}
		}
		if n != 0 || !forget {
			return next, n, nil
		}
		at = next + 1
	}
	return 0, 0, nil
}

// MapSegments are the segments that hold the committed root's pages, by id.
// Blocks counts their live page blocks. Those without one are listed until Forget.
func (m *Map) MapSegments() (list []SegmentLive, need []PageRef) {
	if !m.loaded {
		return nil, []PageRef{m.root}
	}
	for p := (spot{}); m.segments.at(p) != nil; p = m.segments.next(p) {
		c := m.segments.at(p)
		s := SegmentLive{layout.SegmentID(c.segment), uint64(c.n)}
		if s.Segment == m.root.Segment {
			s.Blocks += uint64(m.root.Blocks)
		}
		list = append(list, s)
	}
	return list, nil
}

// Forget drops segments without a live block from the tables, with the next
// checkpoint: the metadata service retired them. Others stay.
func (m *Map) Forget(segments ...layout.SegmentID) {
	for _, s := range segments {
		add(&m.active().delta, uint64(s), 0).forget = true
	}
}

// Vacate makes the next Freeze move all pages out of these map segments.
func (m *Map) Vacate(mapSegments ...layout.SegmentID) {
	for _, s := range mapSegments {
		add(&m.vacate, uint64(s), 0)
	}
}

// Unsettled is how many overwritten blocks wait for their old place to be
// looked up. It grows when headers are applied while pages are not loaded.
func (m *Map) Unsettled() (n layout.BlockCount) {
	for _, l := range m.layers {
		n += layout.BlockCount(l.unsettled)
	}
	return n
}

// Settle looks up old places, in block order. It returns at most `most` missing
// pages: load, Install, repeat until it returns none.
func (m *Map) Settle(most int) (need []PageRef) {
	for _, l := range m.layers {
		need = m.settleLayer(l, most, need)
	}
	return need
}

func (m *Map) settleLayer(l *layer, most int, need []PageRef) []PageRef {
	for at := uint64(0); l.unsettled > 0 && len(need) < most; {
		p := l.touch(at)
		r := l.runs.at(p)
		for r != nil && !r.unsettled {
			p = l.runs.next(p)
			r = l.runs.at(p)
		}
		if r == nil {
			break
		}
		leaf := m.find(&m.extents, max(at, r.start), 0)
		if leaf.missing() {
			need = append(need, leaf.ref)
		} else {
			l.settle(leaf.node, leaf.lo, leaf.hi)
		}
		at = leaf.hi
	}
	return need
}
