package write

import "time"

// Tick does what time has made due.
func (c *Core) Tick(now time.Duration) {
	if c.err != nil {
		return
	}
	if now >= c.scanAt {
		c.scan(now)
	}
	c.resend(now)
	c.step(now)
}

// NextTick is when Tick is next due; ok is false when nothing waits for time.
func (c *Core) NextTick() (at time.Duration, ok bool) {
	if c.err != nil {
		return 0, false
	}
	want := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if len(c.flight) > 0 || len(c.round) > 0 {
		want(c.scanAt)
	}
	for _, e := range c.flight {
		if e.again != 0 {
			want(e.againAt)
		}
	}
	for _, d := range c.round {
		if d.again != 0 {
			want(d.again)
		}
	}
	if c.log.len() > 0 && c.selfGoal <= c.flushed {
		want((*c.log.at(0)).cutAt + SyncAfter)
	}
	c.placeTick(want)
	for _, s := range c.closed {
		if c.sealable(s) {
			want(s.asking.at)
		}
	}
	return at, ok
}

// placeTick: what pending and displaced stripes wait for.
func (c *Core) placeTick(want func(time.Duration)) {
	for _, b := range []*backoff{&c.asking, &c.askingAhead} {
		if b.at != 0 && c.allocation == nil {
			want(b.at)
		}
	}
	if c.pending.len() == 0 && c.moving.len() == 0 && c.pauseUntil == 0 {
		return
	}
	switch {
	case c.pauseUntil != 0:
		want(c.pauseUntil)
	case c.pending.len() > 0 && c.pending.at(0).relocation && c.cold.segment != nil: // waits for a place in flight there
	case c.pending.len() > 0 && c.moving.len() == 0 && !c.need:
		for _, s := range c.open {
			if c.takes(s) {
				want(c.pending.at(0).at + CutAfter)
				return
			}
		}
	}
}

// resend sends again what was refused as overloaded a while ago.
func (c *Core) resend(now time.Duration) {
	for _, e := range c.flight {
		if e.again != 0 && now >= e.againAt {
			c.do(Action{Kind: Retry, Stripe: e.stripe, Shards: e.again})
			e.again = 0
		}
	}
	for _, d := range c.round {
		if d.again != 0 && now >= d.again {
			d.again = 0
			c.do(Action{Kind: SendSync, Sync: d.sync})
		}
	}
}
