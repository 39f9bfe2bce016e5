package client

import (
	"context"
	"time"

	"strake/internal/errs"
)

// A cleaner moves so much a second: beside others that read at the devices which it
// reads from, beside a client that writes, and alone. The devices' schedulers hold
// back its reads further, but not what it takes of processors and the network.
const (
	readRate = 22 << 20
	busyRate = 32 << 20
	idleRate = 256 << 20
)

// writingFor is how long a client's write counts as one that a cleaner goes on beside.
const writingFor = time.Second

// rate is how many bytes a second a round may move now. Where space is short it waits
// for nobody.
func (c *cleaner) rate(r *round) int64 {
	switch {
	case r.inTurn:
		return idleRate
	case c.v.cell.shards.reading(time.Now()):
		return readRate
	case c.wroteWithin(writingFor):
		return busyRate
	}
	return idleRate
}

// wroteWithin tells whether the client wrote lately, as far as the cleaner looked.
func (c *cleaner) wroteWithin(d time.Duration) bool {
	return c.writes.within(d, c.v.stats.writes.Load(), time.Now())
}

// lately knows when a count last grew. The zero value takes a first count that is not
// zero for one that just grew. For one caller.
type lately struct {
	count uint64
	grew  time.Time
}

// within tells whether the count grew in the time before now.
func (l *lately) within(d time.Duration, count uint64, now time.Time) bool {
	if count != l.count {
		l.count, l.grew = count, now
	}
	return !l.grew.IsZero() && now.Sub(l.grew) < d
}

// pacer spreads bytes over time. The zero value is ready; for one caller.
type pacer struct{ next time.Time }

// take waits until n bytes more are due at a rate, in bytes a second. A pause of
// the caller gives no credit.
func (p *pacer) take(ctx context.Context, n, rate int64) error {
	if now := time.Now(); p.next.Before(now) {
		p.next = now
	} else {
		pause(ctx, p.next.Sub(now))
	}
	p.next = p.next.Add(time.Duration(n) * time.Second / time.Duration(rate))
	return errs.Wrap(ctx.Err(), "wait for the cleaner's turn")
}
