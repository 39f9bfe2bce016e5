package write

import (
	"slices"
	"time"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// place gives displaced stripes a new place, in seq order, and only then new
// ones: in any segment seqs ascend.
func (c *Core) place(now time.Duration) {
	c.need, c.needLength = false, 0
	if now < c.pauseUntil {
		return
	}
	c.pauseUntil = 0
	for c.moving.len() > 0 {
		e := *c.moving.at(0)
		s := c.forMoved(now, e)
		if s == nil {
			return
		}
		c.moving.pop()
		c.again(now, e, s)
	}
	c.build(now)
	if c.limited(now) {
		c.build(now)
	}
	c.freed = false
}

// forMoved finds a segment for a displaced stripe: an open one whose last seq
// is lower, else a fresh one. Nil: it waits, for a place in flight or a grant.
func (c *Core) forMoved(now time.Duration, e *entry) *segment {
	seq, busy := e.stripe.Seq(), false
	for _, s := range c.open {
		if !s.fits(e.blocks(), seq) {
			continue
		}
		if s.flight < c.cfg.InFlight {
			return s
		}
		busy = true
	}
	if busy {
		return nil
	}
	if s := c.openSpare(now, e.blocks(), seq); s != nil {
		return s
	}
	c.need = true
	g := c.cfg.Geometry
	if c.lastK != 0 {
		g.K = min(g.K, c.lastK)
	}
	for i := 0; i < c.moving.len(); i++ { // one that any of those that wait fits in
		d := *c.moving.at(i)
		c.needLength = max(c.needLength, layout.ShardOffset(g.ShapeFor(d.blocks(), d.stripe.Seq()).Unit))
	}
	return nil
}

// forNew finds a segment for a new stripe: of the open ones the one with the
// fewest stripes in flight; a fresh one when none is open.
func (c *Core) forNew(now time.Duration) *segment {
	if c.mapped {
		return c.forPage(now)
	}
	if c.pending.at(0).relocation {
		if s, wait := c.forRelocation(); s != nil || wait {
			return s
		}
	}
	var best *segment
	for _, s := range c.open {
		if c.takes(s) && (best == nil || s.flight < best.flight) {
			best = s
		}
	}
	if best == nil && c.warm() == 0 {
		best = c.openSpare(now, 0, c.lastSeq+1)
		c.need = best == nil
	}
	return best
}

// takes tells whether s takes a new stripe of clients now. (A map checkpoint is not
// bounded here: Place is.)
func (c *Core) takes(s *segment) bool { return !s.cold && s.flight < c.cfg.InFlight }

// oldestWarm is the oldest open segment that takes what clients write; there is one.
func (c *Core) oldestWarm() *segment {
	if c.open[0].cold {
		return c.open[1]
	}
	return c.open[0]
}

// openSpare opens the first healthy spare that holds a stripe of n blocks.
func (c *Core) openSpare(now time.Duration, n layout.BlockCount, seq layout.Seq) *segment {
	for i, s := range c.spares {
		if !s.healthy(now) || !s.fits(n, seq) {
			continue
		}
		if c.warm() == MaxOpen {
			c.close(c.oldestWarm(), full)
		}
		c.spares = slices.Delete(c.spares, i, i+1)
		s.state = open
		c.open = append(c.open, s)
		return s
	}
	return nil
}

// limited opens one segment more when the open ones have limited the writer for
// a while: all their places in flight are taken and a full stripe is pending.
func (c *Core) limited(now time.Duration) bool {
	limited := c.warm() > 0 && !c.mapped && c.pendBlocks >= fullStripe(c.oldestWarm().pub.Geometry)
	for _, s := range c.open {
		limited = limited && !c.takes(s)
	}
	switch {
	case !limited:
		c.limitedSince = -1
	case c.limitedSince < 0:
		c.limitedSince = now
	case now-c.limitedSince >= openAfter && c.warm() < MaxOpen:
		c.limitedSince = -1
		return c.openSpare(now, 0, c.lastSeq+1) != nil
	}
	return false
}

// again makes the next copy of a displaced stripe: same epoch, seq and content.
func (c *Core) again(now time.Duration, e *entry, s *segment) {
	old := e.stripe
	old.shared = true
	st := &Stripe{Copy: old.Copy + 1, Header: &stripe.Header{Flags: old.Header.Flags, Seq: old.Header.Seq,
		Blocks: old.Header.Blocks, Ranges: old.Header.Ranges}, Pieces: old.Pieces, Durable: old.Durable, shared: true}
	c.lay(now, e, st, s, s.pub.Geometry.ShapeFor(e.blocks(), st.Header.Seq))
	c.do(Action{Kind: Move, Stripe: st, Shards: e.parts, From: old.Header.Segment})
}

// lay gives a copy its place in s and counts it as in flight.
func (c *Core) lay(now time.Duration, e *entry, st *Stripe, s *segment, shape layout.Shape) {
	h := st.Header
	h.Cell, h.Volume, h.Epoch = c.cfg.Cell, c.cfg.Volume, c.cfg.Epoch
	h.Segment, h.Geometry, h.Shape = s.pub.ID, s.pub.Geometry, shape
	if !c.mapped {
		h.Flushed = c.flushed
	}
	h.Offset = s.take(h.Seq, shape.Unit)
	st.Segment = s.pub
	e.stripe, e.seg, e.parts = st, s, h.Participants()
	e.stored, e.durable, e.again, e.sentAt = 0, 0, 0, now
	c.flight = append(c.flight, e)
	if !s.cold {
		c.rate.add(now, layout.ShardOffset(shape.Unit))
	}
	if s.spent() {
		c.close(s, full)
	}
}

// close takes an open segment, or a spare, out of use.
func (c *Core) close(s *segment, state segState) {
	switch s.state {
	case open:
		if s == c.cold.segment {
			c.cold.segment = nil
		}
		c.open = remove(c.open, s)
		c.closed = append(c.closed, s)
	case spare:
		c.spares = remove(c.spares, s)
		c.closed = append(c.closed, s)
	}
	s.state = state
}

func remove[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
