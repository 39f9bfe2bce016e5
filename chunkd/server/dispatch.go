package server

import (
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// dispatch serves one request. An error ends the connection; refusals are
// replies.
func (c *conn) dispatch(r *request) error {
	switch r.Kind {
	case frame.Hello:
		return c.hello(r)
	case frame.Append:
		return c.append(r)
	}
	if err := c.allowed(r); err != nil {
		return c.refuse(r, err)
	}
	switch r.Kind {
	case frame.Read:
		return c.read(r)
	case frame.Sync:
		return c.sync(r)
	case frame.List:
		return c.list(r)
	}
	return c.answer(r, nil) // Ping
}

// allowed refuses requests without a valid token, out of time, or with a flag whose
// meaning this program would leave out.
func (c *conn) allowed(r *request) error {
	if more := r.Flags &^ frame.KnownFlags; more != 0 {
		return errs.New(errs.Version, r.Kind.String(), "flags %#x are not known here", more).
			WithHint("upgrade the chunk server, or use the older program")
	}
	if r.Token == 0 || int(r.Token) > len(c.grants) {
		return errs.New(errs.Unauthenticated, r.Kind.String(), "token handle %d was not given on this connection", r.Token).
			WithHint("say hello first")
	}
	return r.late()
}

// hello opens the connection to requests under a token.
func (c *conn) hello(r *request) error {
	h, err := frame.DecodeHello(r.meta)
	switch {
	case err != nil:
	case h.Cell != c.srv.cell:
		err = errs.New(errs.WrongCell, "hello", "this server belongs to cell %x, the request to cell %x", c.srv.cell, h.Cell).
			WithHint("check the addresses given to --cell")
	case len(c.grants) >= maxGrants:
		err = errs.New(errs.Overloaded, "hello", "%d tokens were said on this connection", maxGrants).WithHint("open another connection")
	}
	if err != nil {
		return c.refuse(r, err)
	}
	c.grants = append(c.grants, grant{h.Volume, c.srv.volumes.of(h.Volume)})
	body := frame.HelloReply{Server: c.srv.id, Handle: layout.TokenHandle(len(c.grants))}
	return c.answer(r, body.AppendTo(nil))
}

// answer adds a reply without payload to the connection's batch.
func (c *conn) answer(r *request, meta []byte) error {
	if err := c.room(frame.HeaderLen + len(meta)); err != nil {
		return err
	}
	r.served()
	c.judge(r, nil)
	c.out.add(&r.reply, meta, nil)
	return nil
}

// refuse adds an error reply to the connection's batch.
func (c *conn) refuse(r *request, err error) error {
	if err := c.room(errorLen); err != nil {
		return err
	}
	r.served()
	c.judge(r, err)
	c.out.addError(&r.reply, err)
	return nil
}

// room makes sure that n bytes fit into the connection's batch.
func (c *conn) room(n int) error {
	if c.out.fits(n) {
		return nil
	}
	return c.flush(&c.out)
}

// spawn runs the current request on a goroutine of its own.
func (c *conn) spawn(run func(c *conn, r *request, out *batch)) error {
	r, err := c.handOver()
	if err == nil {
		c.aside(r, run)
	}
	return err
}

// handOver takes the current request away from the connection's goroutine, with
// a slot, and gives the connection another to receive into. It waits while all
// slots are taken; the replies made so far do not wait with it.
func (c *conn) handOver() (*request, error) {
	select {
	case c.slots <- struct{}{}:
	default:
		if err := c.flush(&c.out); err != nil {
			return nil, err
		}
		c.slots <- struct{}{}
	}
	r := c.current
	r.meta = nil
	c.current = c.srv.getRequest()
	return r, nil
}

// aside runs a request that has a slot on a goroutine of its own.
func (c *conn) aside(r *request, run func(c *conn, r *request, out *batch)) {
	c.jobs.Go(func() { c.complete(r, run) })
}

// complete serves a request that has a slot, writes its reply and frees the slot.
func (c *conn) complete(r *request, run func(c *conn, r *request, out *batch)) {
	out := c.srv.getBatch()
	run(c, r, out)
	c.flush(out)
	c.srv.putBatch(out)
	c.srv.putRequest(r)
	<-c.slots
}

// finish adds the reply of a request that was served on its own goroutine.
func (c *conn) finish(r *request, out *batch, meta []byte, err error) {
	r.served()
	c.judge(r, err)
	if err != nil {
		out.addError(&r.reply, err)
		return
	}
	out.add(&r.reply, meta, nil)
}
