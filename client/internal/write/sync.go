package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/frame"
)

// sync starts a round of syncs when something is to be flushed and all
// stripes up to there are stored: one Sync to each device with stores that are
// not durable. One round at a time: what comes meanwhile shares the next.
func (c *Core) sync(now time.Duration) {
	c.ownWish(now)
	goal := c.goal()
	if goal == 0 || len(c.round) > 0 || !c.storedThrough(goal) {
		return
	}
	for _, s := range c.open {
		c.mark(s)
	}
	for _, s := range c.closed {
		if s.state == full && s.live > 0 {
			c.mark(s)
		}
	}
	for _, d := range c.round {
		d.sentAt, d.again = now, 0
		c.do(Action{Kind: SendSync, Sync: d.sync})
	}
}

// ownWish makes the writer flush by itself at half of its cap, or when the
// oldest stripe is a second old.
func (c *Core) ownWish(now time.Duration) {
	if c.selfGoal > c.flushed || c.log.len() == 0 {
		return
	}
	if c.held >= c.cfg.MemoryCap/2 || now-(*c.log.at(0)).cutAt >= SyncAfter || c.releasing {
		c.selfGoal = c.lastSeq
	}
}

// goal is the next seq that somebody wants flushed, 0 when nobody does.
func (c *Core) goal() layout.Seq {
	goal := layout.Seq(0)
	want := func(seq layout.Seq) {
		if seq > c.flushed && (goal == 0 || seq < goal) {
			goal = seq
		}
	}
	want(c.selfGoal)
	if c.durables.len() > 0 {
		want(c.durables.at(0).seq)
	}
	if c.flushes.len() > c.unresolved {
		want(c.flushes.at(0).target)
	}
	if c.ackFlushes.len() > 0 {
		want(c.ackFlushes.at(0).target)
	}
	return goal
}

// storedThrough tells whether all participants have the current copies of all
// stripes up to seq.
func (c *Core) storedThrough(seq layout.Seq) bool {
	if c.moving.len() > 0 && (*c.moving.at(0)).stripe.Seq() <= seq {
		return false
	}
	for _, e := range c.flight {
		if e.stripe.Seq() <= seq {
			return false
		}
	}
	return true
}

// mark adds a segment's shards that need it to the syncs of the round.
func (c *Core) mark(s *segment) {
	for i := range s.shards {
		sh := &s.shards[i]
		d := sh.device
		if sh.dirty <= sh.synced || d.sync != nil && len(d.sync.Shards) == frame.MaxSyncShards {
			continue
		}
		if d.sync == nil {
			c.syncID++
			d.sync = c.newSync()
			d.sync.ID, d.sync.Server, d.sync.Device, d.sync.Incarnation = c.syncID, d.server.id, d.id, sh.Incarnation
			c.round = append(c.round, d)
		}
		key := layout.ShardKey{Segment: s.pub.ID, Shard: layout.ShardIndex(i)}
		d.sync.Shards = append(d.sync.Shards, frame.ShardRef{ShardKey: key, Generation: sh.Generation})
		d.sync.covers = append(d.sync.covers, mark{s, layout.ShardIndex(i), sh.stored})
	}
}

func (c *Core) newSync() *Sync {
	if n := len(c.freeSyncs); n > 0 {
		s := c.freeSyncs[n-1]
		c.freeSyncs = c.freeSyncs[:n-1]
		return s
	}
	return new(Sync)
}

// Synced answers a SendSync.
func (c *Core) Synced(now time.Duration, id SyncID, err error) {
	if c.err != nil {
		return
	}
	f := faultOf(err)
	if planted.Is(planted.FlushErrorDropped) && f != ends {
		f = none
	}
	if f == ends {
		c.end(errs.Wrap(err, "sync"))
		return
	}
	d := c.syncing(id)
	if d == nil {
		return // of a server that was left meanwhile
	}
	if f == later {
		d.again = now + overloadedWait
		return
	}
	s := d.sync
	d.sync, c.round = nil, remove(c.round, d)
	first := s.covers[0]
	if f == none {
		c.peers.answered(d.server, d.sentAt)
		d.server.syncs.add(now, now-d.sentAt)
		for _, m := range s.covers {
			sh := &m.seg.shards[m.shard]
			sh.synced = max(sh.synced, m.stored)
		}
	} else {
		c.fault(now, f, &first.seg.shards[first.shard], first.seg)
	}
	*s = Sync{Shards: s.Shards[:0], covers: s.covers[:0]}
	c.freeSyncs = append(c.freeSyncs, s)
	c.step(now)
}

func (c *Core) syncing(id SyncID) *device {
	for _, d := range c.round {
		if d.sync.ID == id {
			return d
		}
	}
	return nil
}
