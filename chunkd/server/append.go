package server

import (
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// append stores one unit. Appends of a connection are stored in the order in
// which they came: by the connection's goroutine, or, while the device is slow, by
// its lane. Only the wait for durability happens aside.
func (c *conn) append(r *request) error {
	body, err := c.admit(r)
	if err != nil {
		if skipped := c.in.skip(r.Payload); skipped != nil {
			return skipped
		}
		return c.refuse(r, err)
	}
	slow := c.lane.active() || r.dev.writes.expects(r.Payload) > inlineWrite || !r.free(true, r.Payload)
	r.unit.Ref, r.unit.Epoch, r.unit.Header = body.Shard, r.Epoch, body.Header
	if slow {
		r.header = append(r.header[:0], body.Header...)
		r.unit.Header = r.header
	}
	if err := c.payload(r, slow); err != nil {
		c.release(r)
		return err
	}
	if slow {
		return c.enlist()
	}
	switch err := c.store(r); {
	case err != nil:
		return c.refuse(r, err)
	case r.Flags&frame.Durable != 0:
		return c.spawn((*conn).syncAside)
	}
	return c.answer(r, nil)
}

// store hands the unit to the store when the device's turn comes, and prepares
// the sync of a durable one.
func (c *conn) store(r *request) error {
	var err error
	if r.Payload > r.dev.Sched.Quantum(true) {
		r.unit.Turns = r.turns.begin(c, r)
		err = r.dev.Store.Append(r.unit)
		r.turns.end()
	} else {
		err = r.turn(c.srv.ctx, r.tag(true, r.Payload), r.storeWork)
	}
	if err == nil {
		c.count(r, r.Payload, true)
		r.reply.Generation = r.unit.Ref.Generation
		r.shards = append(r.shards[:0], r.unit.Ref)
		r.incarnation = r.dev.Store.Incarnation()
	}
	r.unit = store.Append{}
	c.release(r)
	return err
}

// release gives the payload's buffer and memory back, and its place at the device.
func (c *conn) release(r *request) {
	if r.admitted {
		r.admitted = false
		r.dev.Sched.Release(r.tag(true, r.Payload))
	}
	if r.held != nil {
		c.srv.pool.put(r.held)
		c.srv.memory.release(int64(r.Payload))
		r.held = nil
	}
}

// storeUnit is the work of an append: it runs in the device's turn.
func (r *request) storeUnit() {
	from := r.started()
	r.err = r.dev.Store.Append(r.unit)
	r.dev.writes.measured(r.Payload, r.ended(from))
}

// admit decides, before the payload is read, whether it will be wanted, and
// waits while the device takes no more.
func (c *conn) admit(r *request) (frame.AppendBody, error) {
	if err := c.allowed(r); err != nil {
		return frame.AppendBody{}, err
	}
	body, err := frame.DecodeAppend(r.meta)
	if err != nil {
		return body, err
	}
	if r.dev, err = c.srv.devices.find(body.Shard); err != nil {
		return body, err
	}
	err = c.enter(r)
	r.admitted = err == nil
	return body, err
}

// enter waits at the device's gate. The replies made so far do not wait with it.
func (c *conn) enter(r *request) error {
	tag := r.tag(true, r.Payload)
	if r.dev.Sched.TryAdmit(tag) {
		return nil
	}
	if err := c.flush(&c.out); err != nil {
		return err
	}
	return errs.Wrap(r.dev.Sched.Admit(c.srv.ctx, tag), "%v", r.Kind)
}

// payload receives the unit. What fits beside its meta in the input stays there,
// unless it is to be kept; more is read once, from the socket into a pooled
// buffer, which is held until the store has it.
func (c *conn) payload(r *request, keep bool) error {
	n := r.Payload
	if b := c.in.buffered(); !keep && len(b) >= n {
		r.unit.Payload = b[:n]
		c.in.consume(n)
		return nil
	}
	if err := c.flush(&c.out); err != nil {
		return err
	}
	if err := c.srv.memory.wait(c.srv.ctx, int64(n)); err != nil {
		return err
	}
	r.held = c.srv.pool.get(n)
	r.unit.Payload, r.sums = r.held.bytes[:n], r.sums[:0]
	if err := c.in.readFull(r.unit.Payload, r.sumWork); err != nil {
		return err
	}
	r.unit.Sums = r.sums
	return nil
}

// sumUp takes the checksums of the blocks that p, the payload as far as it has
// come, has more of than before: right after the copy from the socket they are in
// the processor's cache, a mebibyte later they are not.
func (r *request) sumUp(p []byte) {
	for at := len(r.sums) * layout.BlockSize; at+layout.BlockSize <= len(p); at += layout.BlockSize {
		r.sums = append(r.sums, stripe.BlockCRC(p[at:at+layout.BlockSize]))
	}
}
