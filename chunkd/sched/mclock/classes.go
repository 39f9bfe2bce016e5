package mclock

import (
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// SetClass gives every flow of a class its parameters, except for those that
// SetFlow gave others. Work that is queued is served by the new ones at once.
func (c *Core) SetClass(now time.Duration, cl layout.Class, p Params) error {
	if err := p.Check(); err != nil {
		return errs.Wrap(err, "set class")
	}
	c.classes[cl].params = orDefaults(p)
	for _, f := range c.order {
		if f.key.Class == cl {
			c.adopt(now, f, c.ParamsOf(f.key))
		}
	}
	c.retarget(now)
	return nil
}

// SetFlow gives one tenant's work in a class parameters of its own, such as a
// reservation. Its Target is not used: targets belong to classes.
func (c *Core) SetFlow(now time.Duration, k Key, p Params) error {
	if err := p.Check(); err != nil {
		return errs.Wrap(err, "set class")
	}
	if _, known := c.own[k]; !known && len(c.own) >= c.opts.Flows {
		return errs.New(errs.Overloaded, "set class", "%d tenants and classes have parameters of their own", len(c.own)).
			WithHint("end reservations that are not used")
	}
	c.own[k] = orDefaults(p)
	if f := c.flows[k]; f != nil {
		c.adopt(now, f, c.own[k])
	}
	return nil
}

// ResetFlow gives a flow its class's parameters again.
func (c *Core) ResetFlow(now time.Duration, k Key) {
	delete(c.own, k)
	if f := c.flows[k]; f != nil {
		c.adopt(now, f, c.classes[k.Class].params)
	}
}

// ParamsOf gives the parameters that a flow has or would have.
func (c *Core) ParamsOf(k Key) Params {
	if p, ok := c.own[k]; ok {
		return p
	}
	return c.classes[k.Class].params
}

// adopt changes a flow's parameters. What it got ahead of its limit, or by its
// reservation, stays on its account: parts of cell-wide figures change each second, and
// each change would let one piece more through.
func (c *Core) adopt(now time.Duration, f *flow, p Params) {
	if f.params == p {
		c.place(now, f) // the class's target may be another
		return
	}
	at := now - c.behind
	f.reserve, f.limit = f.reserve.rescaled(at, f.params.Reservation, p.Reservation), f.limit.rescaled(now, f.params.Limit, p.Limit)
	f.params = p
	f.p = max(f.p, c.virtual)
	if p := c.virtual + int64(maxDebt)*weightScale/int64(p.Weight); f.p > p {
		f.p = p
	}
	c.place(now, f)
}

// maxDebt is what a flow keeps, in device time, of what it got beyond its share
// when its parameters change.
const maxDebt = 10 * time.Millisecond

// newFlow makes a flow. At the bound those that have nothing to lose make room;
// nil when there are none.
func (c *Core) newFlow(now time.Duration, k Key) *flow {
	if len(c.order) >= c.opts.Flows {
		c.forget(now)
	}
	if len(c.order) >= c.opts.Flows {
		c.stat.refused++
		return nil
	}
	f := &flow{key: k, params: c.ParamsOf(k), idleSince: now - slack - 1, throttledFrom: -1}
	c.flows[k] = f
	c.order = append(c.order, f)
	return f
}

// forget drops all flows that are forgettable.
func (c *Core) forget(now time.Duration) {
	c.order = slices.DeleteFunc(c.order, func(f *flow) bool {
		if !f.forgettable(now, c.behind) {
			return false
		}
		delete(c.flows, f.key)
		return true
	})
}

// retarget finds the smallest latency target in use and the longest quantum that
// takes no more than half of it; while nobody has a target quanta are long. Costs
// are learnt from a saturated device alone; one that a few callers keep busy, each
// with a long piece, is never that: there a quantum is too long also when it was
// seen to take longer than the target with nothing beside it.
func (c *Core) retarget(now time.Duration) {
	c.target, c.quick = bulkTarget, false
	for i := range c.classes {
		if cl := &c.classes[i]; cl.used && cl.params.Target > 0 && now-cl.lastUsed <= inUse {
			c.target, c.quick = min(c.target, cl.params.Target), true
		}
	}
	for kind := range c.quanta {
		n := MaxQuantum
		for c.quick && n > MinQuantum && (c.costs.of(kind == 1, n) > c.target/2 || c.latencies[kind][sizeOf(n)].alone > c.target) {
			n /= 2
		}
		c.quanta[kind] = n
	}
}

// Quantum is how many bytes one piece of work should have at most now.
func (c *Core) Quantum(write bool) int { return c.quanta[kindOf(write)] }
