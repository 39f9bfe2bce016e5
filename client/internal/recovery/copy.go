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
