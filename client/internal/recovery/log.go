package recovery

import (
	"cmp"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// verdict is what is known of a copy.
type verdict uint8

const (
	undecided verdict = iota
	stands
	falls
)

// copyOf is one stripe in one segment.
type copyOf struct {
	seg     *Segment
	seq     layout.Seq
	header  *stripe.Header // nil: nobody can read it
	have    layout.Mask    // shards that have it for sure
	verdict verdict        // with R2 applied: stands means that it counts
	blocked []Blocker      // of an undecided one
}

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

// copies gathers what any shard lists, ascending by seq.
func (s *Segment) copies() ([]*copyOf, error) {
	if len(s.Shards) != s.Geometry.Shards() || !s.Geometry.Valid() {
		return nil, errs.New(errs.InvalidArgument, "recover volume", "segment %d: %d shards of %v", s.ID, len(s.Shards), s.Geometry)
	}
	found := map[layout.Seq]*copyOf{}
	var out []*copyOf
	for i := range s.Shards {
		for _, st := range s.Shards[i].Stripes {
			c := found[st.Seq]
			if c == nil {
				c = &copyOf{seg: s, seq: st.Seq}
				found[st.Seq] = c
				out = append(out, c)
			}
			if st.Header == nil || s.Shards[i].State == Silent {
				continue
			}
			if err := c.add(st, layout.ShardIndex(i)); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, func(a, b *copyOf) int { return cmp.Compare(a.seq, b.seq) })
	return out, nil
}

// add notes what a shard's header says of the copy. All of them say the same.
func (c *copyOf) add(st Stripe, i layout.ShardIndex) error {
	h := st.Header
	bad := h.Seq != c.seq || h.Segment != c.seg.ID || h.Geometry != c.seg.Geometry || !h.Participants().Has(i)
	if o := c.header; o != nil {
		bad = bad || o.Epoch != h.Epoch || o.Offset != h.Offset || o.Shape != h.Shape || o.Blocks != h.Blocks || !slices.Equal(o.CRCs, h.CRCs)
	}
	if bad {
		return errs.New(errs.Corrupt, "recover volume", "segment %d, seq %d: the header in shard %d on server %d contradicts the others or its place",
			c.seg.ID, c.seq, i, c.seg.Shards[i].Server)
	}
	c.header = h
	if !st.Doubt {
		c.have = c.have.With(i)
	}
	return nil
}

// judge applies R1. Of a copy whose header nobody can read, all parity shards
// take part and at least one data shard.
func (c *copyOf) judge() {
	never := c.seg.shards(func(sh *Shard) bool { return sh.State == Listed && !sh.lists(c.seq) })
	if c.header == nil {
		g := c.seg.Geometry
		if never&g.ParityMask() != 0 || never&g.DataMask() == g.DataMask() {
			c.verdict = falls
			return
		}
		c.blocked = c.seg.block(nil, (g.DataMask()|g.ParityMask())&^never, c.seq)
		return
	}
	parts := c.header.Participants()
	switch {
	case never&parts != 0:
		c.verdict = falls
	case c.have.Count() >= c.header.Shape.Data.Count():
		c.verdict = stands
	default:
		c.blocked = c.seg.block(nil, parts&^c.have, c.seq)
	}
}

// find gives what the shard lists of a seq. Lists are ascending.
func (s *Shard) find(seq layout.Seq) (Stripe, bool) {
	i, ok := slices.BinarySearchFunc(s.Stripes, seq, func(st Stripe, seq layout.Seq) int { return cmp.Compare(st.Seq, seq) })
	if !ok {
		return Stripe{}, false
	}
	return s.Stripes[i], true
}

func (s *Shard) lists(seq layout.Seq) bool {
	_, ok := s.find(seq)
	return ok
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
		if ok, blocked = l.seqStands(seq); !ok {
			return cut, blocked
		}
		cut = seq
	}
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

// seals ends each segment at its prefix of standing copies, up to the cut.
func (l *log) seals(cut layout.Seq) []stripe.Seal {
	out := make([]stripe.Seal, len(l.segments))
	for i, copies := range l.segments {
		s := &l.in.Segments[i]
		out[i] = stripe.NewSeal(s.ID, s.Geometry)
		for _, c := range copies {
			if c.verdict != stands || c.seq > cut {
				break
			}
			out[i].Add(c.header)
		}
	}
	return out
}

// tail lists the stripes above the flushed seq whose mapped copy is not whole
// for sure.
func (l *log) tail(cut layout.Seq) (out []Tail) {
	for seq := l.flushed + 1; seq <= cut; seq++ {
		var last *copyOf
		for _, c := range l.bySeq[seq] {
			if c.verdict == stands && (last == nil || later(c.header, last.header)) {
				last = c
			}
		}
		if last != nil && last.have != last.header.Participants() {
			out = append(out, Tail{last.header, last.seg.ID, last.have})
		}
	}
	return out
}
