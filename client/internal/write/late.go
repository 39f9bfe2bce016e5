package write

import (
	"time"

	"strake/internal/layout"
)

// scan looks for participants that are late and asks for a move from their
// servers.
func (c *Core) scan(now time.Duration) {
	c.scanAt = now + scanEvery
	c.eachLate(now, func(v *server) {
		if !v.asked && now >= v.moveAt && now >= c.moveAt {
			v.asked = true
			c.do(Action{Kind: RequestMove, Server: v.id})
		}
	})
}

// eachLate calls f with the server of each participant that owes an answer for
// longer than it may.
func (c *Core) eachLate(now time.Duration, f func(*server)) {
	for _, e := range c.flight {
		for p := e.parts &^ e.stored; p != 0; p &= p - 1 {
			i, _ := p.Nth(0)
			if v := e.seg.shards[i].device.server; c.overdue(now, v, &v.appends, e.sentAt) {
				f(v)
			}
		}
	}
	for _, d := range c.round {
		if c.overdue(now, d.server, &d.server.syncs, d.sentAt) {
			f(d.server)
		}
	}
}

// late tells whether a server owes an answer for longer than it may.
func (c *Core) late(now time.Duration, v *server) (late bool) {
	c.eachLate(now, func(o *server) { late = late || o == v })
	return late
}

// overdue: past a few times the server's recent p99, provided that others have
// answered since (else we or the network are slow, and a move wouldn't help);
// past MaxLate in any case.
func (c *Core) overdue(now time.Duration, v *server, l *latency, sentAt time.Duration) bool {
	age := now - sentAt
	return age > MaxLate || age > MinLate && age > l.limit() && c.peers.othersAnswered(v, sentAt)
}

// MoveGranted answers a RequestMove. One that is refused is asked for again soon,
// whenever the budget has something: a server that is gone by then needs none.
func (c *Core) MoveGranted(now time.Duration, id layout.ServerID, granted bool, retryAfter time.Duration) {
	s := c.peers.servers[id]
	if c.err != nil || s == nil || !s.asked {
		return
	}
	s.asked = false
	switch {
	case !granted:
		s.moveAt = now + min(max(retryAfter, retryFirst), moveAgain)
	case c.late(now, s):
		c.moveAt = now + MoveEvery
		c.leaveServer(now, s)
	}
	c.step(now)
}

// Blocked names the server that the oldest acknowledgement waits for, and since how
// long. A stripe that was taken off a segment because a server did not answer waits for
// that server also while no other segment can be had. Server 0: it waits for a segment,
// or for room. ok is false when nothing waits.
func (c *Core) Blocked(now time.Duration) (server layout.ServerID, wait time.Duration, ok bool) {
	e := c.entry(c.acked + 1)
	if e == nil {
		return 0, 0, false
	}
	server, since, ok := e.owes()
	if e.seg == nil && c.noRoom {
		server = 0
	}
	return server, now - since, ok
}

// P99 is a server's recent 99th percentile of append times; 0 while unknown.
func (c *Core) P99(id layout.ServerID) time.Duration {
	if s := c.peers.servers[id]; s != nil {
		return s.appends.p99()
	}
	return 0
}
