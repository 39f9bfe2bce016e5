package client

import (
	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// payload is what one write hands in: one range. Its bytes stay until every
// stripe with a piece of it is flushed.
type payload struct {
	id    write.WriteID
	r     stripe.Range
	data  []byte            // the blocks of a Write
	buf   *buffer           // what data lies in; nil without data
	uncut uint32            // blocks of r that are in no stripe yet
	left  layout.BlockCount // blocks of data whose stripes are not flushed yet
	done  bool              // the write is done: nobody waits for it any more
	over  *Completion       // to be finished then
	sums  []uint32          // of a relocation: the blocks' checksums, to be carried unchanged
}

// fail gives up what is not cut of a write. What is cut stays a part of the log.
func (p *payload) fail() {
	if p.r.Kind == stripe.Write {
		p.left -= layout.BlockCount(p.uncut)
	}
	p.uncut = 0
}

// overlay holds the writes that the extent map does not show yet, oldest first.
// Reads look here before the map. Stripes are cut, and applied to the map, in
// the order of the writes, so entries leave at the front.
type overlay struct{ writes fifo[*payload] }

func (o *overlay) push(p *payload) { o.writes.push(p) }

// applied tells that the map now shows a stripe: its ranges are those of the
// oldest writes here, joined where one continues the other. A write that was
// cut in part and then refused for want of space is passed over.
func (o *overlay) applied(s *write.Stripe) {
	pieces, used := s.Pieces, layout.BlockCount(0)
	for _, r := range s.Header.Ranges {
		for left := r.Count; left > 0; {
			n := left
			if r.Kind == stripe.Write {
				n = min(n, uint32(pieces[0].Blocks-used))
			}
			took := o.take(r.Kind, pieces, n)
			left -= took
			if r.Kind != stripe.Write {
				continue
			}
			if used += layout.BlockCount(took); used == pieces[0].Blocks {
				pieces, used = pieces[1:], 0
			}
		}
	}
}

// take counts up to n blocks of the oldest write as cut: the one that the first
// piece names, or the first of that kind.
func (o *overlay) take(kind stripe.RangeKind, pieces []write.Piece, n uint32) uint32 {
	p := *o.writes.at(0)
	for p.r.Kind != kind || kind == stripe.Write && p.id != pieces[0].Write {
		o.writes.pop()
		p = *o.writes.at(0)
	}
	n = min(n, p.uncut)
	if p.uncut -= n; p.uncut == 0 {
		o.writes.pop()
	}
	return n
}

// drop takes a write out that will not be cut any further: it failed.
func (o *overlay) drop(p *payload) {
	for i := range o.writes.len() {
		if *o.writes.at(i) == p {
			o.writes.remove(i)
			return
		}
	}
}

// each visits the pending writes that overlap a range, newest first, with the
// part that does.
func (o *overlay) each(r layout.Range, visit func(p *payload, part layout.Range)) {
	for i := o.writes.len() - 1; i >= 0; i-- {
		p := *o.writes.at(i)
		lo, hi := max(r.Start, p.r.Start), min(r.End(), p.r.Start+layout.BlockNumber(p.r.Count))
		if lo < hi {
			visit(p, layout.Range{Start: lo, Count: layout.BlockCount(hi - lo)})
		}
	}
}

// at gives a part of a write's bytes; nil when it reads as zeros.
func (p *payload) at(part layout.Range) []byte {
	if p.r.Kind != stripe.Write {
		return nil
	}
	return p.data[layout.BlockCount(part.Start-p.r.Start).Bytes():][:part.Count.Bytes()]
}
