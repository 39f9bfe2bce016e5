package simclient

import (
	"strake/client/internal/write"
	"strake/internal/layout"
)

// placeKey is where a stripe lies.
type placeKey struct {
	segment layout.SegmentID
	offset  layout.ShardOffset
}

func keyOf(s *write.Stripe) placeKey { return placeKey{s.Header.Segment, s.Header.Offset} }

// stripeQueue holds the stripes that are not flushed, in seq order, and finds
// them by place.
type stripeQueue struct {
	list   []*write.Stripe
	places map[placeKey]*write.Stripe
}

func (q *stripeQueue) push(s *write.Stripe) {
	q.list = append(q.list, s)
	if s.Header.Shape.Unit > 0 {
		q.places[keyOf(s)] = s
	}
}

// replace puts a stripe's new copy in place of the one it has, and gives that.
func (q *stripeQueue) replace(s *write.Stripe) (old *write.Stripe) {
	i := s.Seq() - q.list[0].Seq()
	old = q.list[i]
	q.list[i] = s
	if s.Header.Shape.Unit > 0 {
		delete(q.places, keyOf(old))
		q.places[keyOf(s)] = s
	}
	return old
}

// popUpTo takes the oldest stripe out when its seq is at most seq, else gives nil.
func (q *stripeQueue) popUpTo(seq layout.Seq) *write.Stripe {
	if len(q.list) == 0 || q.list[0].Seq() > seq {
		return nil
	}
	s := q.list[0]
	q.list = q.list[1:]
	if s.Header.Shape.Unit > 0 {
		delete(q.places, keyOf(s))
	}
	return s
}
