package transport

import (
	"sync"
	"time"

	"strake/internal/errs"
	"strake/proto/frame"
)

// memConn is a connection of Mem. Its goroutine, or the simulator, runs
// deliveries, replies and Dones, one at a time.
type memConn struct {
	mem    *Mem
	server *memServer
	addr   string
	peer   frame.HelloReply

	mu      sync.Mutex
	err     error      // guarded by mu, as is all to the blank line
	calls   []*memCall // under way, in the order of Submit
	nextID  uint64     //
	out, in int        // payload bytes under way
	tasks   []func()   // for the goroutine
	running *memCall   // whose Done runs
	changed *sync.Cond // tasks, running or err changed

	ended chan struct{} // closed when the goroutine has ended; nil under a simulator
}

// memCall is a connection's side of one call.
type memCall struct {
	call    *Call // nil once it has ended; guarded by memConn.mu
	out, in int
}

func newMemConn(m *Mem, s *memServer, addr string, peer frame.HelloReply) *memConn {
	c := &memConn{mem: m, server: s, addr: addr, peer: peer}
	c.changed = sync.NewCond(&c.mu)
	if m.options.After == nil {
		c.ended = make(chan struct{})
		go c.run()
	}
	return c
}

// Submit sends a call.
func (c *memConn) Submit(call *Call) error {
	f := &memCall{call: call, out: total(call.Payload), in: total(call.Into)}
	if f.out > frame.MaxPayload || f.in > frame.MaxPayload || len(call.Meta) > frame.MaxMeta {
		return errs.New(errs.TooLarge, "submit "+call.Request.Kind.String(), "%d bytes of fields, %d to send, %d to receive", len(call.Meta), f.out, f.in)
	}
	c.mu.Lock()
	switch window := c.mem.options.Window; {
	case c.err != nil:
		defer c.mu.Unlock()
		return c.err
	case c.out+f.out > window && c.out > 0, c.in+f.in > window && c.in > 0, len(c.calls) == maxCalls:
		defer c.mu.Unlock()
		return errs.New(errs.Overloaded, "submit to "+c.addr, "%d bytes to send and %d to receive are under way", c.out, c.in)
	}
	c.out, c.in, c.nextID = c.out+f.out, c.in+f.in, c.nextID+1
	c.calls = append(c.calls, f)
	call.conn, call.Err, call.ReplyMeta = f, nil, call.ReplyMeta[:0]
	call.Request.ID, call.Request.Meta, call.Request.Payload = c.nextID, len(call.Meta), f.out
	request := wireForm(call)
	meta, payload := join([][]byte{call.Meta}), join(call.Payload)
	c.mu.Unlock()
	c.send(f, request, meta, payload)
	return nil
}

// wireForm is the request as a server would decode it.
func wireForm(call *Call) frame.Request {
	var b [frame.HeaderLen]byte
	call.Request.Encode(b[:], call.Meta)
	request, err := frame.DecodeRequest(b[:])
	if err != nil {
		panic(err) // an encoder that its own decoder refuses
	}
	return request
}

// send lets the request's fate come true.
func (c *memConn) send(f *memCall, request frame.Request, meta, payload []byte) {
	fate := c.mem.fate(c.addr, &request)
	if fate.Cut {
		c.fail(errs.New(errs.Unavailable, "connection to "+c.addr, "the connection broke"))
		return
	}
	if fate.Lose {
		return
	}
	reply := c.replyTo(f, request.Kind, fate)
	deliver := func() { c.server.handler(request, join([][]byte{meta}), join([][]byte{payload}), reply) }
	c.after(fate.Delay, deliver)
	if fate.Duplicate {
		c.after(fate.Delay, deliver)
	}
}

// replyTo makes the function that ends a call with the first reply.
func (c *memConn) replyTo(f *memCall, kind frame.Kind, fate Fate) ReplyFunc {
	var once sync.Once
	return func(r frame.Reply, meta []byte, payload ...[]byte) {
		once.Do(func() {
			r.Kind, r.Meta, r.Payload = kind, len(meta), total(payload)
			m, p := join([][]byte{meta}), join(payload)
			if !fate.LoseReply {
				c.after(fate.ReplyDelay, func() { c.finish(f, r, m, p) })
			}
		})
	}
}

// finish ends a call with its reply.
func (c *memConn) finish(f *memCall, r frame.Reply, meta, payload []byte) {
	c.mu.Lock()
	call := f.call
	if call == nil {
		c.mu.Unlock()
		return
	}
	if err := checkReply(&r, f.in); err != nil {
		c.mu.Unlock()
		c.fail(lost(c.addr, err))
		return
	}
	r.ID = call.Request.ID
	call.Reply, call.ReplyMeta = r, append(call.ReplyMeta[:0], meta...)
	if r.Status != errs.OK {
		call.Err = errs.Wrap(frame.DecodeError(r.Status, meta), "%v at %s", r.Kind, c.addr)
	} else {
		for _, p := range call.Into {
			payload = payload[copy(p, payload):]
		}
	}
	c.land(f)
	c.mu.Unlock()
	c.done(f, call)
}

// checkReply refuses what a TCP connection would break at.
func checkReply(r *frame.Reply, in int) error {
	switch {
	case r.Meta > frame.MaxMeta || r.Payload > frame.MaxPayload:
		return errs.New(errs.TooLarge, "match reply", "%d bytes of fields, %d of payload", r.Meta, r.Payload)
	case r.Status == errs.OK && r.Payload != in && (r.Kind != frame.List || r.Payload > in):
		return errs.New(errs.Corrupt, "match reply", "%v gave %d bytes, asked were %d", r.Kind, r.Payload, in)
	}
	return nil
}

// land ends a flight; its Done is the caller's to run. mu is held.
func (c *memConn) land(f *memCall) {
	f.call = nil
	c.running = f
	c.out, c.in = c.out-f.out, c.in-f.in
	for i := range c.calls {
		if c.calls[i] == f {
			c.calls = append(c.calls[:i], c.calls[i+1:]...)
			return
		}
	}
}

func (c *memConn) done(f *memCall, call *Call) {
	call.Done(call)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == f {
		c.running = nil
	}
	c.changed.Broadcast()
}

// Cancel ends a call; it must not be called from the call's own Done.
func (c *memConn) Cancel(call *Call) {
	c.mu.Lock()
	f, _ := call.conn.(*memCall)
	if f == nil || f.call != call {
		for f != nil && c.running == f {
			c.changed.Wait()
		}
		c.mu.Unlock()
		return
	}
	running := c.running
	c.land(f)
	c.running = running
	c.mu.Unlock()
	call.Err = errs.New(errs.Canceled, "call to "+c.addr, "")
	call.Done(call)
}

// Window is how many payload bytes may be under way in each direction.
func (c *memConn) Window() int { return c.mem.options.Window }

// Peer is the server's answer to hello.
func (c *memConn) Peer() frame.HelloReply { return c.peer }

// Err tells why the connection ended.
func (c *memConn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection; it must not be called from a Done.
func (c *memConn) Close() error {
	c.fail(errs.New(errs.Unavailable, "connection to "+c.addr, "closed by this side"))
	if c.ended != nil {
		<-c.ended
	} else {
		c.sweep()
	}
	return nil
}

// fail notes why the connection ends; its calls fail in the goroutine or in a
// step of the simulator, for Submit may be below us on the stack.
func (c *memConn) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	if first {
		c.mem.forget(c.server, c)
		if c.ended == nil {
			c.mem.options.After(0, c.sweep)
		}
	}
}

// sweep fails every call, one by one, so that a Done may cancel others.
func (c *memConn) sweep() {
	for {
		c.mu.Lock()
		if len(c.calls) == 0 {
			c.mu.Unlock()
			return
		}
		f := c.calls[0]
		call := f.call
		c.land(f)
		call.Err = c.err
		c.mu.Unlock()
		c.done(f, call)
	}
}

// after runs f on the connection's goroutine or in the simulator.
func (c *memConn) after(d time.Duration, f func()) {
	switch {
	case c.mem.options.After != nil:
		c.mem.options.After(d, f)
	case d > 0:
		time.AfterFunc(d, func() { c.post(f) })
	default:
		c.post(f)
	}
}

func (c *memConn) post(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, f)
	c.changed.Broadcast()
}

// run is the goroutine.
func (c *memConn) run() {
	defer close(c.ended)
	for {
		c.mu.Lock()
		for len(c.tasks) == 0 && c.err == nil {
			c.changed.Wait()
		}
		tasks, over := c.tasks, c.err != nil
		c.tasks = nil
		c.mu.Unlock()
		if over {
			c.sweep()
			return
		}
		for _, f := range tasks {
			f()
		}
	}
}

func join(pieces [][]byte) []byte {
	b := make([]byte, 0, total(pieces))
	for _, p := range pieces {
		b = append(b, p...)
	}
	return b
}
