package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Appended answers one shard's part of a Cut, Move or Retry, once each.
func (c *Core) Appended(now time.Duration, r Reply, err error) {
	if c.err != nil {
		return
	}
	f := faultOf(err)
	if f == ends {
		c.end(errs.Wrap(err, "append seq %d", r.Seq))
		return
	}
	e := c.entry(r.Seq)
	if e == nil || e.seg == nil || e.stripe.Copy != r.Copy || r.Shard >= layout.MaxShards || !(e.parts &^ e.stored).Has(r.Shard) {
		return // of a copy that counts no more
	}
	sh := &e.seg.shards[r.Shard]
	switch {
	case f == later:
		e.again, e.againAt = e.again.With(r.Shard), now+overloadedWait
	case f != none:
		c.fault(now, f, sh, e.seg)
	case !c.sameLife(now, sh, r.Incarnation):
		c.leaveAll(now, func(s *segment) bool { return s == e.seg })
	case e.seg != nil: // not left just now, on the news of another segment's device
		c.peers.answered(sh.device.server, e.sentAt)
		sh.device.server.appends.add(now, now-e.sentAt)
		c.store(e, sh, r.Shard)
	}
	c.step(now)
}

// store notes that one participant has the current copy.
func (c *Core) store(e *entry, sh *shard, i layout.ShardIndex) {
	sh.stored++
	e.at[i] = sh.stored
	e.stored = e.stored.With(i)
	e.again = e.again.Without(i)
	if e.stripe.Durable {
		e.durable = e.durable.With(i)
	} else {
		sh.dirty = sh.stored
	}
	if e.stored == e.parts {
		c.flight = remove(c.flight, e)
		e.seg.flight--
		c.freed = true
	}
}

// sameLife compares the incarnation of a reply with that of all stores counted
// for the shard. A shard without stores takes the reply's. A device's news goes
// to all its segments: what they stored in an older life may be lost.
func (c *Core) sameLife(now time.Duration, sh *shard, inc layout.Incarnation) bool {
	d := sh.device
	if inc == 0 || inc < d.inc {
		return false
	}
	if sh.stored == 0 {
		sh.Incarnation = inc
	}
	if inc > d.inc {
		d.inc = inc
		c.leaveAll(now, func(s *segment) bool { return s.olderLife(d) })
	}
	return sh.Incarnation == inc
}

// olderLife tells whether the segment has stores of an older life of d.
func (s *segment) olderLife(d *device) bool {
	for i := range s.shards {
		sh := &s.shards[i]
		if sh.device == d && sh.stored > 0 && sh.Incarnation < d.inc {
			return true
		}
	}
	return false
}
