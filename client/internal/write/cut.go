package write

import (
	"time"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// build cuts stripes of what is pending, as long as one is due and a segment
// takes it.
func (c *Core) build(now time.Duration) {
	for c.pending.len() > 0 {
		s := c.forNew(now)
		if s == nil || !c.due(now, s.pub.Geometry) {
			return
		}
		c.cut(now, s)
	}
}

// due tells whether what is pending is to be cut now.
func (c *Core) due(now time.Duration, g layout.Geometry) bool {
	switch {
	case len(c.flight) == 0, c.unresolved > 0, c.releasing, c.mapped, c.pending.at(0).relocation:
		return true
	case c.pendBlocks >= fullStripe(g), c.freed && c.pendBlocks.Bytes() >= GatherLeast:
		return true
	}
	return now-c.pending.at(0).at >= CutAfter
}

func fullStripe(g layout.Geometry) layout.BlockCount { return layout.BlockCount(g.K) * blocksPerUnit }

// cut makes the next stripe of what is pending and places it in s.
func (c *Core) cut(now time.Duration, s *segment) {
	st := c.newStripe()
	seq := c.lastSeq + 1
	st.Copy = 1
	st.Header.Seq = seq
	var shape layout.Shape
	if c.mapped {
		shape = c.gatherPages(s, st)
	} else {
		c.gather(s, st)
		shape = s.pub.Geometry.ShapeFor(layout.BlockCount(st.Header.Blocks), seq)
	}
	c.freed = false
	c.lastSeq = seq
	e := c.newEntry()
	e.cutAt = now
	c.log.push(e)
	c.resolve()
	c.lay(now, e, st, s, shape)
	c.do(Action{Kind: Cut, Stripe: st, Shards: e.parts})
}

// gather moves as much of what is pending into st as s has room for. A
// relocation stripe holds nothing else.
func (c *Core) gather(s *segment, st *Stripe) {
	h, room := st.Header, s.room()
	relocation := c.pending.at(0).relocation
	if relocation {
		h.Flags |= stripe.Relocation
	}
	most := int(fullStripe(s.pub.Geometry)) + maxDiscardsInStripe
	for c.pending.len() > 0 && len(h.Ranges) < most {
		p := c.pending.at(0)
		if p.relocation != relocation || p.r.Kind == stripe.Write && layout.BlockCount(h.Blocks) == room {
			return
		}
		n := p.r.Count
		if p.r.Kind == stripe.Write {
			n = uint32(min(layout.BlockCount(n), room-layout.BlockCount(h.Blocks)))
			st.addPiece(Piece{p.write, p.first, layout.BlockCount(n), layout.BlockCount(h.Blocks)})
			h.Blocks += n
			c.pendBlocks -= layout.BlockCount(n)
		}
		st.addRange(stripe.Range{Start: p.r.Start, Count: n, Kind: p.r.Kind})
		st.Durable = st.Durable || p.eager
		c.consume(p, n)
	}
}

// consume takes n blocks off the first pending part.
func (c *Core) consume(p *part, n uint32) {
	c.begun = true
	p.r.Start += layout.BlockNumber(n)
	p.r.Count -= n
	p.first += layout.BlockCount(n)
	if p.r.Count > 0 {
		return
	}
	if p.last {
		c.cutWhole(*p, c.lastSeq+1, nil)
	}
	c.pending.pop()
}

// addRange appends a range, or lengthens the last one that it continues.
func (s *Stripe) addRange(r stripe.Range) {
	h := s.Header
	if n := len(h.Ranges); n > 0 {
		l := &h.Ranges[n-1]
		if l.Kind == r.Kind && l.Start+layout.BlockNumber(l.Count) == r.Start && uint64(l.Count)+uint64(r.Count) < 1<<32 {
			l.Count += r.Count
			return
		}
	}
	h.Ranges = append(h.Ranges, r)
}

// addPiece appends a piece, or lengthens the last one that it continues.
func (s *Stripe) addPiece(p Piece) {
	if n := len(s.Pieces); n > 0 {
		l := &s.Pieces[n-1]
		if l.Write == p.Write && l.First+l.Blocks == p.First && l.At+l.Blocks == p.At {
			l.Blocks += p.Blocks
			return
		}
	}
	s.Pieces = append(s.Pieces, p)
}
