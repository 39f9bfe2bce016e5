package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// backoff spaces requests that are refused. The zero value lets the first one go.
type backoff struct {
	at, wait time.Duration // not before; the wait after the last refusal
}

// passed tells whether it is time for the next request.
func (b *backoff) passed(now time.Duration) bool {
	if now < b.at {
		return false
	}
	b.at = 0
	return true
}

// refused doubles the wait, up to most.
func (b *backoff) refused(now, most time.Duration) {
	b.wait = min(max(2*b.wait, retryFirst), most)
	b.at = now + b.wait
}

// stock asks for segments: for what waits now, and ahead of need. One request
// at a time. What is needed doesn't wait for what was refused ahead of need.
func (c *Core) stock(now time.Duration) {
	spare := c.askingAhead.passed(now)
	if c.allocation != nil || !c.asking.passed(now) {
		return
	}
	needed, ahead := 0, 0
	if c.need {
		needed = 1
	}
	if !c.mapped && !c.releasing && c.ordSubmit > 0 && spare {
		healthy, length := c.healthySpares(now)
		want := c.wantSpares(now, healthy, length)
		ahead = max(0, want-healthy)
		if healthy >= want || len(c.spares)+needed+ahead > MaxSpare {
			c.giveBack(now)
		}
	}
	if c.need && len(c.spares) == MaxSpare { // none of them fits
		c.close(c.spares[0], left)
	}
	count := min(needed+ahead, MaxSpare-len(c.spares))
	if count == 0 {
		return
	}
	c.requests++
	c.allocation = &Allocation{Request: c.requests, Map: c.mapped, Count: count, Ahead: count - min(count, needed), MinLength: c.needLength,
		Avoid: c.peers.avoided(now), failures: c.failures}
	if c.urgent() {
		c.allocation.Urgent, c.allocation.Count, c.allocation.Ahead = true, 1, 0
		c.allocation.MinLength = max(c.needLength, min(c.displaced(), mostUrgent))
	}
	c.do(Action{Kind: Allocate, Allocation: c.allocation})
}

// urgent tells whether what needs a segment may have it from the reserve: the cell
// is full, and it has a seq already or brings no payload.
func (c *Core) urgent() bool {
	return c.need && c.noRoom && (c.moving.len() > 0 || c.bare())
}

// mostUrgent bounds the shards of an urgent segment, beyond the longest unit.
const mostUrgent = 16 << 20

// displaced is the length of all units that wait for a new place.
func (c *Core) displaced() (sum layout.ShardOffset) {
	for i := 0; i < c.moving.len(); i++ {
		e := *c.moving.at(i)
		sum += layout.ShardOffset(c.cfg.Geometry.ShapeFor(e.blocks(), e.stripe.Seq()).Unit)
	}
	return sum
}

// wantSpares is how many spares hold ten seconds of writing, within bounds, when
// those that are there hold so much ahead.
func (c *Core) wantSpares(now time.Duration, healthy int, ahead layout.ShardOffset) int {
	n, length := healthy, max(c.lastLength, layout.FirstShardLength)
	for lacking := c.rate.tenSeconds(now) - ahead; lacking > 0 && n < MaxSpare; n++ {
		length = min(2*length, layout.MaxShardLength) // the next is twice as long; where it isn't, more are asked for then
		lacking -= length
	}
	return min(max(n, MinSpare), MaxSpare)
}

// healthySpares counts the spares that can be used, and their length.
func (c *Core) healthySpares(now time.Duration) (n int, length layout.ShardOffset) {
	for _, s := range c.spares {
		if s.healthy(now) {
			n++
			length += s.pub.Length
		}
	}
	return n, length
}

// giveBack seals spares on servers to be avoided, empty: others are there.
func (c *Core) giveBack(now time.Duration) {
	for i := len(c.spares) - 1; i >= 0; i-- {
		if s := c.spares[i]; !s.healthy(now) {
			c.close(s, left)
		}
	}
}

// Granted answers an Allocate.
func (c *Core) Granted(now time.Duration, id RequestID, segments []Segment, err error) {
	if c.err != nil || c.grantedCold(now, id, segments, err) || c.allocation == nil || c.allocation.Request != id {
		return
	}
	asked := c.allocation
	c.allocation = nil
	if err == nil {
		err = c.checkGrant(segments)
	}
	if err != nil {
		c.notGranted(now, asked, err)
		c.step(now)
		return
	}
	c.asking = backoff{}
	switch short := asked.Count - len(segments); {
	case short > 0: // the cell has no room to spare
		c.askingAhead.refused(now, retryMost)
	case asked.Ahead > 0:
		c.askingAhead = backoff{}
	}
	c.noRoom = c.noRoom && asked.Urgent
	for _, g := range segments {
		s := c.newSegment(g)
		s.asked = asked.failures
		c.spares = append(c.spares, s)
		c.lastLength, c.lastK = g.Length, g.Geometry.K
	}
	c.step(now)
}

// notGranted waits and asks again; the writer ends when its lease is gone. With
// no space left, payload that is not cut yet is refused, and the rest is asked for
// again at once, from the reserve: a stripe that has a seq is completed, and a
// discard may be what makes room.
func (c *Core) notGranted(now time.Duration, asked *Allocation, err error) {
	most := retryMost
	switch {
	case metaEnds(err):
		c.end(errs.Wrap(err, "allocate segments"))
		return
	case asked.Ahead == asked.Count:
		c.askingAhead.refused(now, most)
		return
	case errs.KindOf(err) != errs.NoSpace || !c.need:
	case c.mapped:
		c.abort(errs.Wrap(err, "write map pages"))
	default:
		c.noRoom = true
		c.refuse(errs.Wrap(err, "write"), asked.Urgent)
		if most = retryMost / 20; c.urgent() && !asked.Urgent {
			c.asking = backoff{}
			return
		}
	}
	c.asking.refused(now, most)
}

// checkGrant refuses what no metadata service should send.
func (c *Core) checkGrant(segments []Segment) error {
	bad := func(g Segment, format string, args ...any) error {
		args = append([]any{g.ID}, args...)
		return errs.New(errs.InvalidArgument, "", "segment %d: "+format, args...)
	}
	if len(segments) == 0 {
		return errs.New(errs.Unavailable, "", "none came")
	}
	for _, g := range segments {
		switch {
		case g.ID == 0 || !g.Geometry.Valid() || len(g.Shards) != g.Geometry.Shards():
			return bad(g, "geometry %v with %d shards", g.Geometry, len(g.Shards))
		case g.Geometry.M < c.cfg.Geometry.M:
			return bad(g, "geometry %v has less parity than %v", g.Geometry, c.cfg.Geometry)
		case g.Length < layout.BlockSize || g.Length > layout.MaxShardLength:
			return bad(g, "%d bytes per shard", g.Length)
		}
	}
	return nil
}
