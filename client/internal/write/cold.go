package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Relocated blocks are cold: they outlived what was written with them. So they go
// to a segment of their own, and are not mixed with blocks that will soon be
// overwritten. It comes from the reserve where space is short, which client writes
// must not eat up; that is the other reason.

// cold is the open segment for relocations, and the request for one.
type cold struct {
	segment    *segment    // open, or nil
	allocation *Allocation // under way
	refused    error       // why the last request was refused; nil when it was not
	asking     backoff
}

// RelocationReady tells whether a relocation of n blocks would be cut as one stripe
// at once, and in which geometry. When not it asks for a segment: ask again after
// each event. An error says why there is none; the next call asks once more, after
// a while. Submit must follow before another input.
func (c *Core) RelocationReady(now time.Duration, n layout.BlockCount) (g layout.Geometry, ready bool, err error) {
	switch {
	case c.err != nil:
		return g, false, c.err
	case c.releasing:
		return g, false, errs.New(errs.Closed, "relocate", "the volume is being released")
	}
	if s := c.cold.segment; s != nil {
		if s.room() >= min(n, fullStripe(s.pub.Geometry)) {
			return s.pub.Geometry, now >= c.pauseUntil && c.moving.len() == 0 && s.flight < min(coldInFlight, c.cfg.InFlight), nil
		}
		c.CloseCold(now)
	}
	err, c.cold.refused = c.cold.refused, nil
	if c.cold.allocation == nil && err == nil && c.cold.asking.passed(now) {
		c.requests++
		c.cold.allocation = &Allocation{Request: c.requests, Cold: true, Count: 1, Avoid: c.peers.avoided(now), failures: c.failures}
		c.do(Action{Kind: Allocate, Allocation: c.cold.allocation})
	}
	return g, false, err
}

// CloseCold ends the segment for relocations: it is sealed once all is flushed.
func (c *Core) CloseCold(now time.Duration) {
	if s := c.cold.segment; s != nil && c.err == nil {
		c.close(s, full)
		c.sealAll(now)
	}
}

// grantedCold answers the request for a cold segment; false: it was another's.
func (c *Core) grantedCold(now time.Duration, id RequestID, segments []Segment, err error) bool {
	a := c.cold.allocation
	if a == nil || a.Request != id {
		return false
	}
	c.cold.allocation = nil
	if err == nil {
		err = c.checkGrant(segments)
	}
	switch {
	case err == nil:
		s := c.newSegment(segments[0])
		s.asked, s.cold, s.state = a.failures, true, open
		c.open = append(c.open, s)
		c.cold.segment, c.cold.asking = s, backoff{}
	case metaEnds(err):
		c.end(errs.Wrap(err, "allocate a segment for relocations"))
		return true
	default:
		c.cold.refused = err
		c.cold.asking.refused(now, retryMost)
	}
	c.step(now)
	return true
}

// forRelocation finds a segment for the relocation that is next to be cut: the cold
// one, else, where that was left since it was asked for, any.
func (c *Core) forRelocation() (s *segment, wait bool) {
	s = c.cold.segment
	switch {
	case s == nil:
		return nil, false
	case s.flight < c.cfg.InFlight:
		return s, false
	}
	return nil, true
}

// warm counts the open segments that take what clients write.
func (c *Core) warm() int {
	if c.cold.segment != nil {
		return len(c.open) - 1
	}
	return len(c.open)
}
