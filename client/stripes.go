package client

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
// them by place: their blocks are read from memory.
type stripeQueue struct {
	list   fifo[*write.Stripe] // consecutive seqs
	places map[placeKey]*write.Stripe
}

func (q *stripeQueue) push(s *write.Stripe) {
	q.list.push(s)
	if s.Header.Shape.Unit > 0 {
		q.places[keyOf(s)] = s
	}
}

// replace puts a stripe's new copy in place of the one it has, and gives that.
func (q *stripeQueue) replace(s *write.Stripe) (old *write.Stripe) {
	at := q.list.at(int(s.Seq() - (*q.list.at(0)).Seq()))
	old, *at = *at, s
	if s.Header.Shape.Unit > 0 {
		delete(q.places, keyOf(old))
		q.places[keyOf(s)] = s
	}
	return old
}

// popUpTo takes the oldest stripe out when its seq is at most seq, else gives nil.
func (q *stripeQueue) popUpTo(seq layout.Seq) *write.Stripe {
	if q.list.len() == 0 || (*q.list.at(0)).Seq() > seq {
		return nil
	}
	s := q.list.pop()
	if s.Header.Shape.Unit > 0 {
		delete(q.places, keyOf(s))
	}
	return s
}

// at gives the un-flushed stripe at a place, nil when there is none.
func (q *stripeQueue) at(segment layout.SegmentID, offset layout.ShardOffset) *write.Stripe {
	return q.places[placeKey{segment, offset}]
}
