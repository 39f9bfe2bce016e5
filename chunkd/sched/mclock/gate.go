package mclock

import "time"

// The gate of a flow. The payload of a write is read from its socket only once
// it was admitted; until then it waits in the peer's memory and not in this
// server's. The gate is per flow and not per class, because else one tenant's
// writers could keep another's waiting.

// Admit lets a write's payload in, or has it wait: ok is false, and Admitted will
// give the request. Refusals are Enqueue's. An admitted request is idle again and
// its bytes are held until Release.
func (c *Core) Admit(now time.Duration, r *Request) (ok bool, err error) {
	f, err := c.accept(now, r)
	if err != nil {
		return false, err
	}
	switch {
	case r.Deadline != 0 && now > r.Deadline:
		f.stat.late++
		return false, c.late
	case f.gate.n == 0 && c.passes(f, r.Bytes):
		f.held += int64(r.Bytes)
		return true, nil
	case f.gate.n >= c.opts.FlowDepth:
		f.stat.refused++
		return false, c.full
	}
	r.state, r.flow, r.arrived, r.Late = gated, f, now, false
	f.gate.push(r)
	f.stat.gated++
	return false, nil
}

// passes tells whether so many bytes fit through the gate.
func (c *Core) passes(f *flow, bytes int) bool {
	return f.held == 0 || f.held+int64(bytes) <= c.opts.GateBytes
}

// Passes tells whether Admit would let a write in at once.
func (c *Core) Passes(k Key, bytes int) bool {
	f := c.flows[k]
	return f == nil || f.gate.n == 0 && c.passes(f, bytes)
}

// Release gives the bytes of an admitted write back, whether it was stored or
// not. Afterwards Admitted may have somebody.
func (c *Core) Release(k Key, bytes int) {
	if f := c.flows[k]; f != nil {
		f.held = max(0, f.held-int64(bytes))
	}
}

// Admitted takes the next request from the gate of a flow that may pass now; nil
// when none may. It is idle again and its bytes are held.
func (c *Core) Admitted(now time.Duration, k Key) *Request {
	f := c.flows[k]
	if f == nil || f.gate.n == 0 || !c.passes(f, f.gate.first.Bytes) {
		return nil
	}
	r := f.gate.first
	f.gate.remove(r)
	f.held += int64(r.Bytes)
	f.stat.gateTime += now - r.arrived
	r.state, r.flow = idle, nil
	return r
}
