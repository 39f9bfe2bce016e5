package write

import (
	"time"

	"strake/internal/layout"
)

// entry is a stripe that was cut and is not flushed.
type entry struct {
	stripe  *Stripe     // the current copy
	seg     *segment    // where it lies; nil: displaced, waits in moving
	parts   layout.Mask // participants of the current copy
	stored  layout.Mask // of these, that answered
	durable layout.Mask // of these, durable by the append itself
	again   layout.Mask // refused as overloaded, to be sent again at againAt
	againAt time.Duration
	sentAt  time.Duration // of the current copy
	cutAt   time.Duration
	owing   layout.ServerID          // for which a copy was given up last; 0: none was
	owedAt  time.Duration            // since when that server owes an answer
	at      [layout.MaxShards]uint32 // the shard's stored count, this one included
}

// complete tells whether all participants of the current copy have it.
func (e *entry) complete() bool { return e.seg != nil && e.stored == e.parts }

// owes tells which server the stripe waits for, and since when it owes an answer: of
// one that was given up for several copies in turn, since the first of them. Server 0:
// it was displaced, and nobody owed it anything. ok is false when all participants have
// the current copy.
func (e *entry) owes() (server layout.ServerID, since time.Duration, ok bool) {
	if e.seg == nil && e.owing == 0 {
		return 0, e.sentAt, true
	}
	if e.seg == nil {
		return e.owing, e.owedAt, true
	}
	i, ok := (e.parts &^ e.stored).Nth(0)
	if !ok {
		return 0, 0, false
	}
	if server = e.seg.shards[i].Server; server == e.owing {
		return server, e.owedAt, true
	}
	return server, e.sentAt, true
}

// flushable tells whether all participants have it durably, in the incarnation
// that stored it (a shard's count begins anew in no other one: see sameLife).
func (e *entry) flushable() bool {
	if !e.complete() {
		return false
	}
	for p := e.parts &^ e.durable; p != 0; p &= p - 1 {
		i, _ := p.Nth(0)
		if e.at[i] > e.seg.shards[i].synced {
			return false
		}
	}
	return true
}

func (e *entry) blocks() layout.BlockCount { return layout.BlockCount(e.stripe.Header.Blocks) }

// entry finds a stripe that is not flushed.
func (c *Core) entry(seq layout.Seq) *entry {
	if seq <= c.flushed || seq > c.lastSeq {
		return nil
	}
	return *c.log.at(int(seq - c.flushed - 1))
}

func (c *Core) newEntry() *entry {
	if n := len(c.freeEntries); n > 0 {
		e := c.freeEntries[n-1]
		c.freeEntries = c.freeEntries[:n-1]
		return e
	}
	return new(entry)
}

func (c *Core) freeEntry(e *entry) {
	*e = entry{}
	c.freeEntries = append(c.freeEntries, e)
}

// newStripe takes a freed one, with its slices emptied.
func (c *Core) newStripe() *Stripe {
	if n := len(c.freeStripes); n > 0 {
		s := c.freeStripes[n-1]
		c.freeStripes = c.freeStripes[:n-1]
		return s
	}
	return newStripe()
}
