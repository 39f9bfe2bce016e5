package write

import (
	"fmt"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// Check verifies the invariants of doc.go and names the first broken one. It
// walks everything: for tests, and for a build that wants it.
func (c *Core) Check() error {
	for _, f := range []func() error{c.checkLog, c.checkSegments, c.checkHeld, c.checkBounds} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// checkLog: I1, I2, I6.
func (c *Core) checkLog() error {
	if c.err != nil {
		return nil
	}
	if int(c.lastSeq-c.flushed) != c.log.len() || c.acked < c.flushed || c.acked > c.lastSeq {
		return fmt.Errorf("I1: flushed %d, acked %d, last %d, %d in the log", c.flushed, c.acked, c.lastSeq, c.log.len())
	}
	flight, moving := 0, 0
	for i := 0; i < c.log.len(); i++ {
		e := *c.log.at(i)
		seq := c.flushed + 1 + layout.Seq(i)
		switch {
		case e.stripe.Seq() != seq:
			return fmt.Errorf("I1: seq %d stands where %d belongs", e.stripe.Seq(), seq)
		case e.seg == nil:
			if moving >= c.moving.len() || *c.moving.at(moving) != e {
				return fmt.Errorf("I6: displaced seq %d doesn't wait in order", seq)
			}
			moving++
		case e.seg.state != open && e.seg.state != full:
			return fmt.Errorf("I6: seq %d lies in segment %d, which was left", seq, e.seg.pub.ID)
		case !e.complete():
			flight++
		}
	}
	if flight != len(c.flight) || moving != c.moving.len() {
		return fmt.Errorf("I6: %d in flight and %d displaced, counted %d and %d", len(c.flight), c.moving.len(), flight, moving)
	}
	return nil
}

// checkSegments: I3, I4.
func (c *Core) checkSegments() error {
	last, live, flight := map[*segment]*stripe.Header{}, map[*segment]int{}, map[*segment]int{}
	for i := 0; i < c.log.len(); i++ {
		e := *c.log.at(i)
		if e.seg == nil {
			continue
		}
		h := e.stripe.Header
		if l := last[e.seg]; l != nil && l.End() > h.Offset {
			return fmt.Errorf("I3: seq %d at %d overlaps seq %d in segment %d", h.Seq, h.Offset, l.Seq, h.Segment)
		}
		last[e.seg] = h
		live[e.seg]++
		if !e.complete() {
			flight[e.seg]++
		}
	}
	for _, list := range [][]*segment{c.spares, c.open, c.closed} {
		for _, s := range list {
			l := last[s]
			switch {
			case l != nil && (l.Seq > s.last || l.End() > s.end) || s.end > s.pub.Length:
				return fmt.Errorf("I3: segment %d ends at %d with seq %d", s.pub.ID, s.end, s.last)
			case s.live != live[s] || s.flight != flight[s]:
				return fmt.Errorf("I6: segment %d counts %d live and %d in flight, not %d and %d", s.pub.ID, s.live, s.flight, live[s], flight[s])
			case s.seal.Last > c.flushed:
				return fmt.Errorf("I4: the seal of segment %d holds seq %d, flushed is %d", s.pub.ID, s.seal.Last, c.flushed)
			}
		}
	}
	return nil
}

// checkHeld: I5.
func (c *Core) checkHeld() error {
	if c.err != nil {
		return nil
	}
	var blocks, pending layout.BlockCount
	for i := 0; i < c.log.len(); i++ {
		blocks += (*c.log.at(i)).blocks()
	}
	for i := 0; i < c.pending.len(); i++ {
		if p := c.pending.at(i); p.r.Kind == stripe.Write {
			pending += layout.BlockCount(p.r.Count)
		}
	}
	if c.held != (blocks+pending).Bytes() || pending != c.pendBlocks {
		return fmt.Errorf("I5: %d bytes held, %d blocks pending; counted %d and %d", c.held, c.pendBlocks, (blocks + pending).Bytes(), pending)
	}
	return nil
}

// checkBounds: I7.
func (c *Core) checkBounds() error {
	limit := c.cfg.MemoryCap + c.cfg.MaxWrite()
	switch {
	case c.warm() > MaxOpen || len(c.spares) > MaxSpare:
		return fmt.Errorf("I7: %d open segments, %d spares", len(c.open), len(c.spares))
	case c.held > limit && !c.mapped:
		return fmt.Errorf("I7: %d bytes held, at most %d", c.held, limit)
	}
	for _, s := range c.open {
		if s.flight > c.cfg.InFlight && !c.mapped {
			return fmt.Errorf("I7: %d stripes in flight in segment %d", s.flight, s.pub.ID)
		}
	}
	return nil
}
