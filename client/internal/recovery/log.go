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
	decided  layout.Seq  // a cut, a root or a seal vouches for the log up to here
	flushed  layout.Seq  // it must stand up to here; at least decided
	segments [][]*copyOf // by input segment, ascending by seq
	bySeq    map[layout.Seq][]*copyOf
}

// newLog sorts the sealed segments. Those above LastCut are of live seals, which hold
// nothing that isn't flushed.
func newLog(in Input) *log {
	if planted.Is(planted.LastCutTrusted) {
		in.Covers = in.LastCut
	}
	l := &log{in: in, decided: in.LastCut, bySeq: map[layout.Seq][]*copyOf{}}
	l.in.Sealed = slices.Clone(in.Sealed)
	slices.SortFunc(l.in.Sealed, func(a, b Sealed) int { return cmp.Compare(a.First, b.First) })
	for _, s := range in.Sealed {
		l.decided = max(l.decided, s.Last)
	}
	l.flushed = max(in.Flushed, l.decided)
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
	cut = l.in.Covers
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

// unsure finds the first seq up to a given one, which is known to stand, of which only
// shards that can't tell may have the copy that counts (R9). 0: there is none.
func (l *log) unsure(upTo layout.Seq) (first layout.Seq, blocked []Blocker) {
	for seq := range l.bySeq { // the least is looked for: the order does not matter
		if planted.Is(planted.LastCutTrusted) && seq <= l.in.LastCut {
			continue
		}
		if seq > upTo || first != 0 && seq > first || l.in.holds(seq) {
			continue
		}
		ok, b := l.seqStands(seq)
		if c := l.newest(seq); seq <= l.in.Covers && c != nil { // the map names this copy, and no other
			ok, b = c.verdict == stands, c.blocked
		}
		if !ok && len(b) > 0 {
			first, blocked = seq, b
		}
	}
	return first, blocked
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

// whole tells whether a seal may hold a standing copy: every participant has it for
// sure and nothing unseen lies before it, or it was all there when the writer called
// it flushed. That is said of a seq's newest copy: older ones were left behind, as
// they were.
func (l *log) whole(c *copyOf) bool {
	if c.seq <= l.flushed && c == l.newest(c.seq) && !l.in.holds(c.seq) {
		return true
	}
	return c.have == c.header.Participants() && c.seg.shards(func(sh *Shard) bool { return sh.State != Listed }) == 0
}

// newest is the copy of a seq in the segment that was made last, of those that did
// not fall: it may be the one that was flushed.
func (l *log) newest(seq layout.Seq) (last *copyOf) {
	for _, c := range l.bySeq[seq] {
		if c.verdict != falls && (last == nil || c.seg.ID > last.seg.ID) {
			last = c
		}
	}
	return last
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

// holds tells whether a sealed segment holds a seq for sure.
func (in *Input) holds(seq layout.Seq) bool {
	return slices.ContainsFunc(in.Sealed, func(s Sealed) bool { return s.holds(seq) })
}

// tail lists the stripes of the log that no seal holds.
func (l *log) tail(cut layout.Seq) (out []Tail) {
	held := map[layout.Seq]bool{}
	for i := range l.segments {
		for _, c := range l.sealed(i, cut) {
			held[c.seq] = true
		}
	}
	for seq := l.in.Covers + 1; seq <= cut; seq++ {
		if last := l.latest(seq); last != nil && !held[seq] && !l.in.holds(seq) {
			out = append(out, Tail{last.header, last.seg.ID, last.have})
		}
	}
	return out
}
