package server

import (
	"strake/internal/errs"
	"strake/proto/frame"
)

// sync makes shards durable, aside and after the appends that came before it.
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
	if c.lane.active() {
		return c.enlist()
	}
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
	c.finish(r, out, nil, err)
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
		c.finish(r, out, nil, err)
		return
	}
	out.owed += maxListBytes
	var headers []byte
	var answer frame.ListReply
	err := r.turn(c.srv.ctx, r.tag(false, most), func() {
		from := r.started()
		if r.err = r.permitted(); r.err == nil {
			var n int
			headers, n, answer.Next, r.err = r.dev.Store.List(l.Shard, l.From, most)
			answer.Count = uint32(n)
		}
		r.ended(from)
	})
	if err != nil {
		c.finish(r, out, nil, err)
		return
	}
	r.served()
	r.reply.Generation = l.Shard.Generation
	out.add(&r.reply, answer.AppendTo(nil), []piece{{bytes: headers}})
}

// maxListBytes caps the headers of one List's reply; the store gives at least
// one header, which is shorter.
const maxListBytes = 1 << 20
