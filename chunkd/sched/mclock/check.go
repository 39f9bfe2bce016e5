package mclock

import (
	"fmt"
	"time"
)

// Check holds the core against its invariants. The error names the broken one.
func (c *Core) Check() error {
	waiting, running := 0, 0
	for _, f := range c.order {
		waiting += f.queue.n
		running += f.running
		if err := c.checkFlow(f); err != nil {
			return err
		}
	}
	if waiting != c.waiting || running != c.running || c.extra > min(running, extraWidth) {
		return fmt.Errorf("I1: %d wait and %d run, counted as %d and %d", waiting, running, c.waiting, c.running)
	}
	for i := range c.heaps {
		h := &c.heaps[i]
		for at, e := range h.items {
			if e.flow.pos[i] != at+1 || at > 0 && e.before(h.items[(at-1)/2]) {
				return fmt.Errorf("I3: heap %d is out of order at %d", i, at)
			}
		}
	}
	return nil
}

func (c *Core) checkFlow(f *flow) error {
	in := func(i int) bool { return f.pos[i] > 0 }
	off := func(i int, key int64) bool { return in(i) && c.heaps[i].items[f.pos[i]-1].key != key }
	backlog := f.queue.n > 0
	switch {
	case in(byLimit) && in(byWeight), backlog != (in(byLimit) || in(byWeight)):
		return fmt.Errorf("I2: flow %v with %d queued is in limit: %v, in weight: %v", f.key, f.queue.n, in(byLimit), in(byWeight))
	case in(byUrgency) != (in(byWeight) && c.classes[f.key.Class].params.Target > 0):
		return fmt.Errorf("I2: flow %v is in weight: %v, in urgency: %v", f.key, in(byWeight), in(byUrgency))
	case in(byReserve) != (backlog && !f.params.Reservation.IsZero()):
		return fmt.Errorf("I2: flow %v with %d queued is in reserve: %v", f.key, f.queue.n, in(byReserve))
	case off(byLimit, int64(f.limit.at())), off(byWeight, f.p), off(byUrgency, f.p), off(byReserve, int64(f.reserve.at())), in(byWeight) && f.p < c.virtual:
		return fmt.Errorf("I3: flow %v has other keys than its tags R %v L %v P %d, virtual time %d", f.key, f.reserve.at(), f.limit.at(), f.p, c.virtual)
	case f.gate.n > 0 && c.passes(f, f.gate.first.Bytes):
		return fmt.Errorf("I4: flow %v holds %d bytes and %d wait at its gate", f.key, f.held, f.gate.n)
	}
	n, bytes, cost, last := 0, int64(0), time.Duration(0), f.idleSince-1<<62
	for r := f.queue.first; r != nil; r = r.next {
		if r.arrived < last || r.state != queued || r.flow != f {
			return fmt.Errorf("I5: flow %v: request %d of its queue is out of place", f.key, n)
		}
		n, bytes, cost, last = n+1, bytes+int64(r.Bytes), cost+r.cost, r.arrived
	}
	if n != f.queue.n || bytes != f.queuedBytes || cost != f.queuedCost {
		return fmt.Errorf("I1: flow %v queues %d requests of %d bytes and %v, counted as %d, %d and %v", f.key, n, bytes, cost, f.queue.n, f.queuedBytes, f.queuedCost)
	}
	return nil
}
