package mclock

import "time"

// Next gives the request to run now, nil when none may. wait is then the time
// after which to ask again although nothing was enqueued or done; 0: no need. A
// request with Late set is not to be run. After each of the other calls Next is
// to be asked until it gives nil.
func (c *Core) Next(now time.Duration) (r *Request, wait time.Duration) {
	if c.waiting == 0 {
		c.watch(now, false)
		return nil, 0
	}
	c.promote(now)
	f, reserved := (*flow)(nil), false
	extra := c.running-c.extra >= c.width.allows()
	if extra {
		f, wait = c.urgent(now)
	} else if f, reserved = c.pick(now); f == nil {
		wait = max(1, c.soonest()-now)
	}
	if f == nil {
		c.watch(now, extra)
		return nil, wait
	}
	r = f.queue.first
	f.queue.remove(r)
	f.queuedBytes, f.queuedCost = f.queuedBytes-int64(r.Bytes), f.queuedCost-r.cost
	c.waiting--
	if lat := c.latency(r); r.Deadline != 0 && now+lat.usual > r.Deadline {
		c.refuseLate(now, r, f, lat)
		r.state, r.flow, r.Late = idle, nil, true
		c.left(now, f)
	} else {
		c.dispatch(now, f, r, reserved)
		if r.extra = extra; extra {
			c.extra++
		} else {
			c.turned = now
		}
	}
	c.place(now, f)
	return r, 0
}

// promote lets flows whose limit has come take part.
func (c *Core) promote(now time.Duration) {
	for f, at := c.heaps[byLimit].top(); f != nil && at <= int64(now); f, at = c.heaps[byLimit].top() {
		c.place(now, f)
	}
}

// urgent gives a flow that may run beside all that the width allows: one of a
// class with a latency target, once nothing of the rest has come or gone for as
// long as that target. Else a width of one and one write that takes a second
// would hold up everybody. wait is when to ask again.
func (c *Core) urgent(now time.Duration) (f *flow, wait time.Duration) {
	f, _ = c.heaps[byUrgency].top()
	if f == nil || c.extra >= extraWidth {
		return nil, 0
	}
	if left := c.turned + c.target - now; left > 0 {
		return nil, left
	}
	return f, 0
}

// pick chooses the flow to serve: the reservation that is due first, else the
// smallest P among those that their limit allows; nil when all must wait.
func (c *Core) pick(now time.Duration) (f *flow, reserved bool) {
	due, at := c.heaps[byReserve].top()
	share, _ := c.heaps[byWeight].top()
	if due == nil || at > int64(now-c.behind) {
		return share, false
	}
	c.lag(now, time.Duration(at))
	if share != nil && share != due {
		first := share.queue.first
		if c.owed >= (floorShare-1)*c.costs.of(first.Write, first.Bytes) {
			return share, false
		}
	}
	return due, true
}

// lag shifts the time of all R tags when the first of them lies further back than
// catchUp. All are shifted alike, so that reservations which can't all be met
// shrink in proportion.
func (c *Core) lag(now, first time.Duration) {
	c.behind = max(c.behind, now-first-catchUp)
}

// soonest is when the next flow may be served that may not be now.
func (c *Core) soonest() time.Duration {
	at := int64(1<<63 - 1)
	if f, key := c.heaps[byLimit].top(); f != nil {
		at = key
	}
	if f, key := c.heaps[byReserve].top(); f != nil {
		at = min(at, key+int64(c.behind))
	}
	return time.Duration(at)
}
