package simclient

import (
	"strake/client/internal/recovery"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// DecideWithoutGaps is a recovery with a bug: where a seq is missing it goes on
// with the next one that stands. It tests the seeded cluster's checkers.
func DecideWithoutGaps(in recovery.Input) (recovery.Plan, error) {
	p, err := recovery.Decide(in)
	if err != nil {
		return p, err
	}
	for i := range in.Segments {
		s := &in.Segments[i]
		p.Seals[i] = stripe.NewSeal(s.ID, s.Geometry)
		for _, h := range standing(s) {
			p.Seals[i].Add(h)
			p.Cut = max(p.Cut, h.Seq)
		}
	}
	return p, nil
}

// standing gives the headers that every participant that listed its stripes has.
func standing(s *recovery.Segment) (out []*stripe.Header) {
	first := s.Geometry.K
	for int(first) < len(s.Shards)-1 && s.Shards[first].State != recovery.Listed {
		first++
	}
	for _, st := range s.Shards[first].Stripes {
		whole := true
		if st.Header == nil {
			continue
		}
		for p := st.Header.Participants(); p != 0; p &= p - 1 {
			i, _ := p.Nth(0)
			whole = whole && (s.Shards[i].State != recovery.Listed || lists(&s.Shards[i], st.Seq))
		}
		if whole {
			out = append(out, st.Header)
		}
	}
	return out
}

func lists(s *recovery.Shard, seq layout.Seq) bool {
	for _, st := range s.Stripes {
		if st.Seq == seq {
			return true
		}
	}
	return false
}
