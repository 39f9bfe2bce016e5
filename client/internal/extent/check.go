package extent

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Check verifies the invariants of doc.go over all that is loaded; for tests.
// What needs missing pages is not looked at.
func (m *Map) Check() error {
	for i, l := range m.layers {
		if err := l.check(); err != nil {
			return errs.Wrap(err, "layer %d", i)
		}
	}
	var bytes int64
	n := 0
	for p := m.cache.ring.next; p != &m.cache.ring; p = p.next {
		bytes += p.bytes()
		n++
		if err := p.node.check(p.ref.First); err != nil {
			return broken("I2", "page %+v: %v", p.ref, err)
		}
	}
	if bytes != m.cache.bytes || n != len(m.cache.pages) {
		return broken("I6", "%d pages of %d bytes, accounted %d of %d", n, bytes, len(m.cache.pages), m.cache.bytes)
	}
	if !m.loaded {
		return nil
	}
	if err := m.checkPages(); err != nil {
		return err
	}
	return m.checkLive()
}

func broken(invariant, format string, args ...any) error {
	return errs.New(errs.Internal, "extent map breaks "+invariant, format, args...)
}

// check: I1.
func (l *layer) check() error {
	var end, unsettled uint64
	n := 0
	for p := (spot{}); l.runs.at(p) != nil; p = l.runs.next(p) {
		r := l.runs.at(p)
		if r.count == 0 || r.start < end && n > 0 {
			return broken("I1", "run %+v after block %d", *r, end)
		}
		end = r.end()
		if r.unsettled {
			unsettled += uint64(r.count)
		}
		n++
	}
	if n != l.runs.n || unsettled != l.unsettled {
		return broken("I1", "%d runs, %d blocks unsettled, accounted %d and %d", n, unsettled, l.runs.n, l.unsettled)
	}
	return nil
}

// checkPages: I2 over both trees, and I5.
func (m *Map) checkPages() error {
	counts := map[uint64]int64{}
	whole := true
	for _, t := range [...]*tree{&m.extents, &m.live} {
		if err := m.checkNode(&t.top, 0, keyEnd, counts, &whole); err != nil {
			return err
		}
	}
	for p := (spot{}); m.segments.at(p) != nil; p = m.segments.next(p) {
		s := m.segments.at(p)
		if n := counts[s.segment]; whole && n != s.n {
			return broken("I5", "map segment %d has %d live blocks, accounted %d", s.segment, n, s.n)
		}
		delete(counts, s.segment)
	}
	if len(counts) > 0 {
		return broken("I5", "pages in %d map segments that are not accounted", len(counts))
	}
	return nil
}

func (m *Map) checkNode(n *node, lo, hi uint64, counts map[uint64]int64, whole *bool) error {
	for i := range n.rows {
		if k := n.get(i, 0); k < lo || k >= hi {
			return broken("I2", "key %d outside of its page's part [%d, %d)", k, lo, hi)
		}
		if n.level == 0 {
			if n.kind == KindExtent && n.run(i).end() > hi {
				return broken("I2", "run %+v reaches beyond %d", n.run(i), hi)
			}
			continue
		}
		ref, end := n.child(i), hi
		if i+1 < n.rows {
			end = n.get(i+1, colFirst)
		}
		counts[uint64(ref.Segment)] += int64(ref.Blocks)
		p := m.cache.pages[ref.key()]
		if p == nil || p.ref != ref {
			*whole = *whole && n.level == 1 // leaves name no page
			continue
		}
		if err := m.checkNode(&p.node, ref.First, end, counts, whole); err != nil {
			return err
		}
	}
	return nil
}

// checkLive: I4, when everything is loaded and settled.
func (m *Map) checkLive() error {
	whole, need := m.Lookup(layout.Range{Count: volumeEnd}, nil)
	if need != nil || m.Unsettled() > 0 {
		return nil
	}
	counts := map[uint64]uint64{}
	for _, e := range whole {
		counts[uint64(e.Place.Segment)] += uint64(e.Count)
	}
	delete(counts, 0)
	segments, need := m.Segments(0, 1<<30, nil)
	if need != nil {
		return nil
	}
	for _, s := range segments {
		if n := counts[uint64(s.Segment)]; n != s.Blocks {
			return broken("I4", "segment %d has %d live blocks, accounted %d", s.Segment, n, s.Blocks)
		}
		delete(counts, uint64(s.Segment))
	}
	if len(counts) > 0 {
		return broken("I4", "%d segments with live blocks are not accounted", len(counts))
	}
	return nil
}
