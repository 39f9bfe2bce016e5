package extent

import "sort"

// source is what changes the pages of one level.
type source interface {
	// next gives the first changed key from `from` on.
	next(from uint64) (key uint64, ok bool)
	// merge feeds the rows of a part, changes applied, to the packer.
	merge(p part, out *packer) error
}

// runSource changes leaves of extents by a layer. It settles what it passes.
type runSource struct{ l *layer }

func (s runSource) next(from uint64) (uint64, bool) {
	r := s.l.runs.at(s.l.touch(from))
	if r == nil {
		return 0, false
	}
	return max(from, r.start), true
}

func (s runSource) merge(p part, out *packer) error {
	s.l.settle(p.node, p.lo, p.hi)
	var last run
	emit := func(r run) {
		if last.count > 0 && last.joins(r) {
			last.count += r.count
			return
		}
		if last.count > 0 {
			out.add(last.row())
		}
		last = r
	}
	i := 0
	s.l.walk(p.lo, p.hi, func(r *run, lo, hi uint64) {
		if r != nil {
			if r.segment != 0 {
				emit(r.clip(lo, hi))
			}
			return
		}
		for ; i < p.node.rows; i++ {
			b := p.node.run(i)
			if b.start >= hi {
				return
			}
			if b.end() > lo {
				emit(b.clip(lo, hi))
			}
			if b.end() > hi {
				return
			}
		}
	})
	if last.count > 0 {
		out.add(last.row())
	}
	return nil
}

// liveSource changes leaves of live blocks by a layer's counts.
type liveSource struct {
	delta *sorted[change]
	c     *Checkpoint // told of segments without a live block
}

func (s liveSource) next(from uint64) (uint64, bool) {
	d := s.delta.at(s.delta.seek(from))
	if d == nil {
		return 0, false
	}
	return d.segment, true
}

func (s liveSource) merge(p part, out *packer) error {
	i, at := 0, s.delta.seek(p.lo)
	for {
		var id uint64 = keyEnd
		var n int64
		d := s.delta.at(at)
		if d != nil && d.segment >= p.hi {
			d = nil
		}
		if i < p.node.rows {
			id = p.node.get(i, colID)
		}
		if d == nil && i == p.node.rows {
			return nil
		}
		forget := false
		if i < p.node.rows && (d == nil || id <= d.segment) {
			n = int64(p.node.get(i, colLive))
			i++
		} else {
			id = d.segment
		}
		if d != nil && d.segment == id {
			n, forget = n+d.n, d.forget
			at = s.delta.next(at)
		}
		if n < 0 || n > maxSegmentBlocks {
			return bad("segment %d would have %d live blocks", id, n)
		}
		if n == 0 && forget {
			continue
		}
		if n == 0 {
			s.c.retire(id)
		}
		out.add(row{colID: id, colLive: uint64(n)})
	}
}

// childSource changes inner pages: children went, others came.
type childSource struct {
	kind    Kind
	removed []uint64  // first keys, ascending
	added   []PageRef // by first key
}

func (s *childSource) find(from uint64) (removed, added int) {
	return sort.Search(len(s.removed), func(i int) bool { return s.removed[i] >= from }),
		sort.Search(len(s.added), func(i int) bool { return s.added[i].First >= from })
}

func (s *childSource) next(from uint64) (key uint64, ok bool) {
	r, a := s.find(from)
	key = keyEnd
	if r < len(s.removed) {
		key, ok = s.removed[r], true
	}
	if a < len(s.added) {
		key, ok = min(key, s.added[a].First), true
	}
	return key, ok
}

func (s *childSource) merge(p part, out *packer) error {
	r, a := s.find(p.lo)
	for i := range p.node.rows {
		old := p.node.row(i, innerCols)
		for ; a < len(s.added) && s.added[a].First <= old[colFirst] && s.added[a].First < p.hi; a++ {
			out.add(s.added[a].row())
		}
		for r < len(s.removed) && s.removed[r] < old[colFirst] {
			r++
		}
		if r < len(s.removed) && s.removed[r] == old[colFirst] {
			continue
		}
		out.add(old)
	}
	for ; a < len(s.added) && s.added[a].First < p.hi; a++ {
		out.add(s.added[a].row())
	}
	return nil
}
