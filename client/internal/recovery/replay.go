package recovery

import (
	"cmp"
	"slices"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// Cut says: of epochs older than Before, replay takes stripes up to Seq only.
type Cut struct {
	Before layout.Epoch
	Seq    layout.Seq
}

// Replay gives the stripes to map, ascending by seq: those within the cuts,
// and of several copies of a seq the latest epoch's, then the latest segment's.
// Headers are those that seals (or live segments up to the flushed seq) list;
// it sorts them in place and returns a prefix.
func Replay(headers []*stripe.Header, cuts []Cut) []*stripe.Header {
	headers = slices.DeleteFunc(headers, func(h *stripe.Header) bool { return beyond(h, cuts) })
	slices.SortFunc(headers, func(a, b *stripe.Header) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(b.Epoch, a.Epoch), cmp.Compare(b.Segment, a.Segment))
	})
	return slices.CompactFunc(headers, func(a, b *stripe.Header) bool { return a.Seq == b.Seq })
}

// beyond tells whether recovery cut the stripe off.
func beyond(h *stripe.Header, cuts []Cut) bool {
	for _, c := range cuts {
		if h.Epoch < c.Before && h.Seq > c.Seq {
			return true
		}
	}
	return false
}

// later tells whether copy a is mapped rather than copy b of the same seq.
func later(a, b *stripe.Header) bool {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Segment, b.Segment)) > 0
}
