package extent

// layer holds what was applied since some root: runs that hide what lies below,
// tombstones (segment 0) among them, and what they change in the live counts.
type layer struct {
	runs      sorted[run]
	delta     sorted[change]
	unsettled uint64 // blocks of unsettled runs
	headers   int64
	bytes     int64
}

// change is what a layer does to the live blocks of one segment. An entry with
// n 0 says that the segment exists.
type change struct {
	segment uint64
	n       int64
	forget  bool // drop the segment's entry when nothing in it is live
}

func (c change) key() uint64 { return c.segment }

// count adds n to a segment's live blocks; zeros have none.
func (l *layer) count(segment uint64, n int64) {
	if segment != 0 {
		add(&l.delta, segment, n)
	}
}

func add(s *sorted[change], segment uint64, n int64) *change {
	p := s.seek(segment)
	if v := s.at(p); v != nil && v.segment == segment {
		v.n += n
		return v
	}
	s.splice(p, p, change{segment: segment, n: n})
	return s.find(segment)
}

// touch gives the first run that ends after key.
func (l *layer) touch(key uint64) spot {
	p := l.runs.seek(key)
	if q, ok := l.runs.prev(p); ok && l.runs.at(q).end() > key {
		return q
	}
	return p
}

// walk visits [from, to) in order: each run, and nil for each gap.
func (l *layer) walk(from, to uint64, visit func(r *run, lo, hi uint64)) {
	l.walkAt(l.touch(from), from, to, visit)
}

// walkAt is walk from a known touch(from).
func (l *layer) walkAt(p spot, from, to uint64, visit func(r *run, lo, hi uint64)) {
	for ; from < to; p = l.runs.next(p) {
		r := l.runs.at(p)
		if r == nil || r.start >= to {
			visit(nil, from, to)
			return
		}
		if r.start > from {
			visit(nil, from, r.start)
			from = r.start
		}
		hi := min(r.end(), to)
		visit(r, from, hi)
		from = hi
	}
}

// before takes the first place in a list of pieces, free for what is left
// before them. Nothing joins it.
func before() run { return run{start: keyEnd} }

// replace puts pieces[1:], which fill [from, to), in place of what is there;
// first is touch(from) and pieces[0] is before().
func (l *layer) replace(first spot, from, to uint64, pieces []run) {
	last := first
	var head, tail run
	for r := l.runs.at(last); r != nil && r.start < to; r = l.runs.at(last) {
		if r.start < from {
			head = r.clip(r.start, from)
		}
		if r.end() > to {
			tail = r.clip(to, r.end())
		}
		last = l.runs.next(last)
	}
	if head.count == 0 {
		if q, ok := l.runs.prev(first); ok && l.runs.at(q).joins(pieces[1]) {
			head, first = *l.runs.at(q), q
		}
	}
	switch {
	case head.count == 0:
		pieces = pieces[1:]
	case head.joins(pieces[1]):
		head.count += pieces[1].count
		pieces = pieces[1:]
		pieces[0] = head
	default:
		pieces[0] = head
	}
	if tail.count > 0 {
		pieces = push(pieces, tail)
	}
	l.runs.splice(first, last, pieces...)
}

// settle looks up what the layer hides of a leaf of the base, [lo, hi), and
// subtracts it where that was not yet done.
func (l *layer) settle(n *node, lo, hi uint64) {
	for l.unsettled > 0 {
		p := l.touch(lo)
		r := l.runs.at(p)
		for r != nil && r.start < hi && !r.unsettled {
			p = l.runs.next(p)
			r = l.runs.at(p)
		}
		if r == nil || r.start >= hi {
			return
		}
		part := r.clip(lo, hi)
		lo = part.end()
		l.subtract(n, part.start, part.end())
		l.unsettled -= uint64(part.count)
		part.unsettled = false
		if part.count == r.count {
			r.unsettled = false
			continue
		}
		l.replace(l.touch(part.start), part.start, part.end(), []run{before(), part})
	}
}

// subtract takes the leaf's blocks in [from, to) out of the live counts.
func (l *layer) subtract(n *node, from, to uint64) {
	for i := max(n.search(from), 0); i < n.rows; i++ {
		start := n.get(i, colStart)
		if start >= to {
			return
		}
		lo, hi := max(start, from), min(start+n.get(i, colCount), to)
		if lo < hi {
			l.count(n.get(i, colSegment), -int64(hi-lo))
		}
	}
}

// What a run and a change take in memory.
const runBytes, changeBytes = 32, 24
