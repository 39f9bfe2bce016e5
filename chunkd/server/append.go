package server

import (
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/proto/frame"
)

// append stores one unit. Appends of a connection are stored in the order in
// which they came, by the connection's goroutine; only the wait for durability
// happens aside.
func (c *conn) append(r *request) error {
	body, err := c.admit(r)
	if err != nil {
		if skipped := c.in.skip(r.Payload); skipped != nil {
			return skipped
		}
		return c.refuse(r, err)
	}
	held, err := c.payload(r)
	if err != nil {
		return err
	}
	r.unit.Ref, r.unit.Epoch, r.unit.Header = body.Shard, r.Epoch, body.Header
	err = r.dev.Sched.Do(c.srv.ctx, r.tag(true, r.Payload), r.storeWork)
	if held != nil {
		c.srv.pool.put(held)
		c.srv.memory.release(int64(r.Payload))
	}
	if err == nil {
		err = r.err
	}
	r.unit = store.Append{}
	if err != nil {
		return c.refuse(r, err)
	}
	r.reply.Generation = body.Shard.Generation
	if r.Flags&frame.Durable != 0 {
		r.shards = append(r.shards[:0], body.Shard)
		r.incarnation = r.dev.Store.Incarnation()
		return c.spawn((*conn).syncAside)
	}
	return c.answer(r, nil)
}

// storeUnit is the work of an append: it runs in the device's turn.
func (r *request) storeUnit() {
	from := r.started()
	r.err = r.dev.Store.Append(r.unit)
	r.ended(from)
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
	return body, r.dev.Sched.Admit(c.srv.ctx, r.tag(true, r.Payload))
}

// payload receives the unit. What fits beside its meta in the input stays there;
// more is read once, from the socket into a pooled buffer, which is held until
// the store has it.
func (c *conn) payload(r *request) (held *buffer, err error) {
	n := r.Payload
	if b := c.in.buffered(); len(b) >= n {
		r.unit.Payload = b[:n]
		c.in.consume(n)
		return nil, nil
	}
	if err := c.flush(&c.out); err != nil {
		return nil, err
	}
	if err := c.srv.memory.wait(c.srv.ctx, int64(n)); err != nil {
		return nil, err
	}
	held = c.srv.pool.get(n)
	r.unit.Payload = held.bytes[:n]
	if err := c.in.readFull(r.unit.Payload); err != nil {
		c.srv.pool.put(held)
		c.srv.memory.release(int64(n))
		return nil, err
	}
	return held, nil
}

// sync makes shards durable, aside.
func (c *conn) sync(r *request) error {
	body, err := frame.DecodeSync(r.meta)
	if err != nil {
		return c.refuse(r, err)
	}
	if r.dev = c.srv.devices.byID(body.Device); r.dev == nil {
		return c.refuse(r, errs.New(errs.NotHere, "sync", "device %d is not on this server", body.Device).
			WithHint("ask for the placement"))
	}
	r.shards, r.incarnation = body.Shards, body.Incarnation
	return c.spawn((*conn).syncAside)
}

// syncAside waits for the device outside of the scheduler: many syncs wait for
// one write of the store, and would hold turns without using the device.
func (c *conn) syncAside(r *request, out *batch) {
	err := r.dev.err()
	if err == nil {
		from := r.started()
		err = r.dev.Store.Sync(r.Epoch, r.incarnation, r.shards)
		r.ended(from)
	}
	r.finish(out, nil, err)
}

// list gives stripe headers, aside.
func (c *conn) list(r *request) (err error) {
	if r.listed, err = frame.DecodeList(r.meta); err != nil {
		return c.refuse(r, err)
	}
	if r.dev, err = c.srv.devices.find(r.listed.Shard); err != nil {
		return c.refuse(r, err)
	}
	r.read.Shard = r.listed.Shard
	return c.spawn((*conn).listAside)
}

func (c *conn) listAside(r *request, out *batch) {
	l := r.listed
	most := int(min(l.Most, maxListBytes))
	if err := c.srv.memory.wait(c.srv.ctx, maxListBytes); err != nil {
		r.finish(out, nil, err)
		return
	}
	out.owed += maxListBytes
	var headers []byte
	var answer frame.ListReply
	err := r.dev.Sched.Do(c.srv.ctx, r.tag(false, most), func() {
		from := r.started()
		if r.err = r.permitted(); r.err == nil {
			var n int
			headers, n, answer.Next, r.err = r.dev.Store.List(l.Shard, l.From, most)
			answer.Count = uint32(n)
		}
		r.ended(from)
	})
	if err == nil {
		err = r.err
	}
	if err != nil {
		r.finish(out, nil, err)
		return
	}
	r.served()
	r.reply.Generation = l.Shard.Generation
	out.add(&r.reply, answer.AppendTo(nil), []piece{{bytes: headers}})
}

// maxListBytes caps the headers of one List's reply; the store gives at least
// one header, which is shorter.
const maxListBytes = 1 << 20
