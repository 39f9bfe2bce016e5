package recovery

import (
	"cmp"
	"slices"

	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/stripe"
)

// log is all that is known of a volume's unsealed stripes.
type log struct {
	in       Input
	flushed  layout.Seq
	segments [][]*copyOf // by input segment, ascending by seq
	bySeq    map[layout.Seq][]*copyOf
}

// newLog sorts the sealed intervals. They are of live seals, which hold nothing
// that isn't flushed.
func newLog(in Input) *log {
	l := &log{in: in, flushed: max(in.Flushed, in.LastCut), bySeq: map[layout.Seq][]*copyOf{}}
	l.in.Sealed = slices.Clone(in.Sealed)
	slices.SortFunc(l.in.Sealed, func(a, b Interval) int { return cmp.Compare(a.First, b.First) })
	for _, s := range in.Sealed {
		l.flushed = max(l.flushed, s.Last)
	}
	return l
}

// read judges a segment's copies, in seq order.
func (l *log) read(s *Segment) error {
	copies, err := s.copies()
	if err != nil {
		return err
	}
	before := &copyOf{verdict: stands}
	for _, c := range copies {
		if c.header != nil {
			l.flushed = max(l.flushed, c.header.Flushed)
		}
		c.judge()
		if before.verdict != stands && c.verdict != falls {
			c.verdict, c.blocked = before.verdict, before.blocked
		}
		before = c
		l.bySeq[c.seq] = append(l.bySeq[c.seq], c)
	}
	l.segments = append(l.segments, copies)
	return nil
}

// end finds the log's last seq (R3, R4). blocked is not empty when the seq
// after it is undecided.
func (l *log) end() (cut layout.Seq, blocked []Blocker) {
	cut = l.in.LastCut
	sealed := l.in.Sealed
	for {
		seq := cut + 1
		for len(sealed) > 0 && sealed[0].Last < seq {
			sealed = sealed[1:]
		}
		if len(sealed) > 0 && sealed[0].First <= seq {
			cut = sealed[0].Last
			continue
		}
		var ok bool
		if ok, blocked = l.seqStands(seq); !ok && planted.Is(planted.SeqGapNotCut) && l.behind(seq) > seq {
			cut = l.behind(seq)
			continue
		}
		if !ok {
			return cut, blocked
		}
		cut = seq
	}
}

// behind is the next seq that stands; a planted bug goes on there.
func (l *log) behind(seq layout.Seq) (next layout.Seq) {
	for q := range l.bySeq {
		if ok, _ := l.seqStands(q); ok && q > seq && (next == 0 || q < next) {
			next = q
		}
	}
	return next
}

func (l *log) seqStands(seq layout.Seq) (ok bool, blocked []Blocker) {
	for _, c := range l.bySeq[seq] {
		switch c.verdict {
		case stands:
			return true, nil
		case undecided:
			blocked = append(blocked, c.blocked...)
		}
	}
	return false, blocked
}

// whole tells whether every participant has a standing copy for sure, or had it
// when the writer called it flushed. That is said of a seq's latest copy: older ones
// were left behind, as they were.
func (l *log) whole(c *copyOf) bool {
	return c.have == c.header.Participants() || c.seq <= l.flushed && c == l.latest(c.seq)
}

// latest is the standing copy of a seq that replay maps; nil: none stands.
func (l *log) latest(seq layout.Seq) (last *copyOf) {
	for _, c := range l.bySeq[seq] {
		if c.verdict == stands && (last == nil || later(c.header, last.header)) {
			last = c
		}
	}
	return last
}

// sealed gives the copies of a segment that its seal holds: the prefix of standing
// ones up to the cut that are whole (R8). One that some participant may lack, and
// all behind it, are copied instead: else the loss of one more shard could take the
// only list that names them, and nobody could tell that they don't matter.
func (l *log) sealed(i int, cut layout.Seq) []*copyOf {
	copies := l.standing(i, cut)
	for n, c := range copies {
		if !l.whole(c) {
			return copies[:n]
		}
	}
	return copies
}

// standing gives a segment's prefix of standing copies up to the cut.
func (l *log) standing(i int, cut layout.Seq) []*copyOf {
	copies := l.segments[i]
	for n, c := range copies {
		if c.verdict != stands || c.seq > cut {
			return copies[:n]
		}
	}
	return copies
}

// seals ends each segment at what it is to hold.
func (l *log) seals(cut layout.Seq, hold func(i int, cut layout.Seq) []*copyOf) []stripe.Seal {
	out := make([]stripe.Seal, len(l.segments))
	for i := range l.segments {
		s := &l.in.Segments[i]
		out[i] = stripe.NewSeal(s.ID, s.Geometry)
		for _, c := range hold(i, cut) {
			out[i].Add(c.header)
		}
	}
	return out
}

// lost counts what was seen above the cut.
func (l *log) lost(cut layout.Seq) (lost Lost) {
	for seq, copies := range l.bySeq {
		if seq <= cut {
			continue
		}
		lost.Stripes++
		lost.Last = max(lost.Last, seq)
		blocks := uint64(0)
		for _, c := range copies {
			if c.header != nil {
				blocks = max(blocks, uint64(c.header.Blocks))
			}
		}
		lost.Blocks += blocks
	}
	return lost
}

// sealed tells whether a live seal holds a seq.
func (in *Input) sealed(seq layout.Seq) bool {
	return slices.ContainsFunc(in.Sealed, func(s Interval) bool { return s.First <= seq && seq <= s.Last })
}

// tail lists the stripes of the log that no seal holds: all of them lie above the
// flushed seq.
func (l *log) tail(cut layout.Seq) (out []Tail) {
	held := map[layout.Seq]bool{}
	for i := range l.segments {
		for _, c := range l.sealed(i, cut) {
			held[c.seq] = true
		}
	}
	for seq := l.in.LastCut + 1; seq <= cut; seq++ {
		if last := l.latest(seq); last != nil && !held[seq] && !l.in.sealed(seq) {
			out = append(out, Tail{last.header, last.seg.ID, last.have})
		}
	}
	return out
}
