package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// stock asks for segments: for what waits now, and ahead of need. One request
// at a time.
func (c *Core) stock(now time.Duration) {
	if c.allocation != nil || now < c.allocAt {
		return
	}
	c.allocAt = 0
	count := 0
	if c.need {
		count = 1
	}
	if !c.mapped && !c.releasing && c.ordSubmit > 0 {
		healthy, ahead := c.healthySpares(now)
		want := c.wantSpares(now, healthy, ahead)
		count += max(0, want-healthy)
		if healthy >= want || len(c.spares)+count > MaxSpare {
			c.giveBack(now)
		}
	}
	if c.need && len(c.spares) == MaxSpare { // none of them fits
		c.close(c.spares[0], left)
	}
	if count = min(count, MaxSpare-len(c.spares)); count == 0 {
		return
	}
	c.requests++
	c.allocation = &Allocation{Request: c.requests, Map: c.mapped, Count: count, MinLength: c.needLength, Avoid: c.peers.avoided(now), failures: c.failures}
	c.do(Action{Kind: Allocate, Allocation: c.allocation})
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
	if c.err != nil || c.allocation == nil || c.allocation.Request != id {
		return
	}
	urgent, asked := c.need, c.allocation.failures
	c.allocation = nil
	if err == nil {
		err = c.checkGrant(segments)
	}
	if err != nil {
		c.notGranted(now, urgent, err)
		c.step(now)
		return
	}
	c.allocWait, c.allocAt = 0, 0
	for _, g := range segments {
		s := c.newSegment(g)
		s.asked = asked
		c.spares = append(c.spares, s)
		c.lastLength, c.lastK = g.Length, g.Geometry.K
	}
	c.step(now)
}

// notGranted waits and asks again; the writer ends when its lease is gone. With
// no space left, what is not cut yet is refused: a stripe that has a seq is
// completed, so displaced ones wait.
func (c *Core) notGranted(now time.Duration, urgent bool, err error) {
	most := retryMost
	switch {
	case metaEnds(err):
		c.end(errs.Wrap(err, "allocate segments"))
		return
	case errs.KindOf(err) != errs.NoSpace || !urgent:
	case c.mapped:
		c.abort(errs.Wrap(err, "write map pages"))
	default:
		c.refuse(errs.Wrap(err, "write"))
		most = retryMost / 20
	}
	c.allocWait = min(max(2*c.allocWait, retryFirst), most)
	c.allocAt = now + c.allocWait
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
