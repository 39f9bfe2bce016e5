package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// fault is what an error of a participant means for the writer.
type fault uint8

const (
	none      fault = iota
	later           // ask again; lateness decides
	gone            // this shard takes no more: the segment ends
	restarted       // the device lost what was not synced: its segments end
	broken          // the device: its segments end, its server is avoided
	away            // the server: its segments end, it is avoided
	ends            // the writer
)

func faultOf(err error) fault {
	if err == nil {
		return none
	}
	switch errs.KindOf(err) {
	case errs.StaleEpoch, errs.LeaseLost, errs.Conflict, errs.InvalidArgument:
		return ends
	case errs.Overloaded, errs.Deadline, errs.Busy:
		return later
	case errs.NotHere, errs.StaleGeneration, errs.Sealed:
		return gone
	case errs.IncarnationMoved:
		return restarted
	case errs.NoSpace, errs.Corrupt:
		return broken
	}
	return away
}

// fault ends the segments that an error concerns.
func (c *Core) fault(now time.Duration, f fault, sh *shard, seg *segment) {
	switch f {
	case gone:
		c.leaveAll(now, func(s *segment) bool { return s == seg })
	case restarted:
		c.leaveAll(now, func(s *segment) bool { return s.stores(sh.device) })
	case broken:
		c.avoid(now, sh.device.server)
		c.leaveAll(now, func(s *segment) bool { return s.stores(sh.device) })
	case away:
		c.leaveServer(now, sh.device.server)
	}
}

// stores tells whether a shard of the segment is on d.
func (s *segment) stores(d *device) bool {
	for i := range s.shards {
		if s.shards[i].device == d {
			return true
		}
	}
	return false
}

func (c *Core) avoid(now time.Duration, s *server) {
	c.failures++
	s.failure, s.avoidUntil = c.failures, now+AvoidFor
}

// leaveServer ends the volume's segments on a server. Its syncs under way are
// forgotten: their answers tell nothing that counts.
func (c *Core) leaveServer(now time.Duration, v *server) {
	c.avoid(now, v)
	for i := 0; i < len(c.round); {
		if d := c.round[i]; d.server == v {
			d.sync = nil
			c.round = remove(c.round, d)
			continue
		}
		i++
	}
	c.leaveAll(now, func(s *segment) bool { return s.onServer(v) })
}

// leaveAll ends the segments in use that match: what is not flushed there goes
// again elsewhere, and they are sealed at what is flushed.
func (c *Core) leaveAll(now time.Duration, match func(*segment) bool) {
	hit := false
	for i := len(c.open) - 1; i >= 0; i-- {
		if s := c.open[i]; match(s) {
			hit = true
			c.close(s, left)
		}
	}
	for _, s := range c.closed {
		if s.state == full && s.live > 0 && match(s) {
			hit = true
			s.state = left
		}
	}
	if !hit {
		return
	}
	if c.moves++; c.moves > freeMoves {
		c.pauseUntil = now + min(retryFirst<<min(c.moves-freeMoves-1, 10), retryMost)
	}
	c.displace()
}

// displace takes all un-flushed stripes off the segments that were left. What
// is stored there counts no more, not even when all of it is.
func (c *Core) displace() {
	keep := c.flight[:0]
	for _, e := range c.flight {
		if e.seg.state != left {
			keep = append(keep, e)
		}
	}
	clear(c.flight[len(keep):])
	c.flight = keep
	c.moving.reset()
	for i := 0; i < c.log.len(); i++ {
		e := *c.log.at(i)
		if e.seg != nil && e.seg.state == left {
			if server, since, ok := e.owes(); ok {
				e.owing, e.owedAt = server, since
			}
			e.seg.live, e.seg.flight, e.seg = 0, 0, nil
		}
		if e.seg == nil {
			c.moving.push(e)
		}
	}
	c.abortMap()
}

// ServerDown tells that the metadata service, or a refused or reset
// connection, says that a server is down.
func (c *Core) ServerDown(now time.Duration, id layout.ServerID) {
	if s := c.peers.servers[id]; s != nil && c.err == nil {
		c.leaveServer(now, s)
		c.step(now)
	}
}
