package transport

import (
	"sync"

	"strake/internal/errs"
	"strake/proto/frame"
)

const (
	// readBuffer is the buffer for headers and small replies, in bytes.
	readBuffer = 32 << 10
	// largeReply is the mean size of expected payloads from which a read takes
	// few bytes of the next reply into the buffer: they would have to be copied.
	largeReply = 32 << 10
	// readAhead is how many it takes then: a header and 1 MiB's checksums.
	readAhead = 2 << 10
)

// buffers are shared by all connections, so that an idle one holds none.
var buffers = sync.Pool{New: func() any { b := make([]byte, readBuffer); return &b }}

// receiver is the reading half of a connection. All but mu belongs to the
// reader; what it does with a call's buffers it does under mu.
type receiver struct {
	mu     sync.Mutex // held across one readv, which never waits: between two, Cancel may take a call away
	pooled *[]byte    // the pool's buffer, nil while there is none
	buf    []byte     // buf[lo:hi] is unread; nil while idle
	lo, hi int
	pieces [][]byte // scratch

	// The payload being read. left counts its bytes not yet read, piece and at
	// where the next one goes. A canceled call's bytes are thrown away.
	flight          *flight
	left, piece, at int
	throw           bool // an error reply's payload
	need            int  // unread bytes that the buffer must come to hold

	err error
}

// read is the reader goroutine.
func (c *conn) read() {
	defer close(c.reader)
	for {
		if err := c.readFrame(); err != nil {
			c.fail(lost(c.addr, err))
			break
		}
	}
	c.recv.release()
	c.sweep()
}

// readFrame reads one reply and ends its call.
func (c *conn) readFrame() error {
	r := &c.recv
	if err := c.fill(frame.HeaderLen); err != nil {
		return err
	}
	reply, err := frame.DecodeReply(r.buf[r.lo:r.hi])
	if err != nil {
		return err
	}
	if err := c.fill(frame.HeaderLen + reply.Meta); err != nil {
		return err
	}
	header := r.buf[r.lo : r.lo+frame.HeaderLen]
	meta := r.buf[r.lo+frame.HeaderLen : r.lo+frame.HeaderLen+reply.Meta]
	if err := frame.Verify(header, meta); err != nil {
		return err
	}
	f, err := c.match(&reply)
	if err != nil {
		return err
	}
	if err := c.begin(f, &reply, meta); err != nil {
		return err
	}
	r.lo += frame.HeaderLen + reply.Meta
	if err := c.readPayload(); err != nil {
		return err
	}
	c.finish(f, &reply)
	return nil
}

// match finds the flight that a reply answers.
func (c *conn) match(reply *frame.Reply) (*flight, error) {
	c.mu.Lock()
	f := c.table.get(reply.ID)
	c.mu.Unlock()
	if f == nil {
		return nil, errs.New(errs.Corrupt, "match reply", "no call has id %#x", reply.ID)
	}
	if f.state.Load() == sent {
		return f, nil
	}
	// The server answered before the request was wholly sent, or just before
	// the writer counted it as sent.
	c.send.mu.Lock()
	defer c.send.mu.Unlock()
	switch state := f.state.Load(); {
	case state == waiting || state == sending && f.done == 0:
		return nil, errs.New(errs.Corrupt, "match reply", "call %#x was answered before it was sent", reply.ID)
	case state == sending && !f.own:
		f.keepRest()
	}
	return f, nil
}

// begin sets the reply's fields and prepares for its payload.
func (c *conn) begin(f *flight, reply *frame.Reply, meta []byte) error {
	r := &c.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flight, r.left, r.piece, r.at = f, reply.Payload, 0, 0
	r.throw = reply.Status != errs.OK
	call := f.call
	if call == nil {
		return nil
	}
	if reply.Kind != call.Request.Kind {
		return errs.New(errs.Corrupt, "match reply", "a reply to %v answers %v", reply.Kind, call.Request.Kind)
	}
	// A list's length is not known beforehand: it may be less than there is room for.
	if !r.throw && reply.Payload != f.in && (reply.Kind != frame.List || reply.Payload > f.in) {
		return errs.New(errs.Corrupt, "match reply", "%v gave %d bytes, asked were %d", reply.Kind, reply.Payload, f.in)
	}
	call.Reply = *reply
	call.ReplyMeta = append(call.ReplyMeta[:0], meta...)
	return nil
}

// finish ends a call whose reply is complete.
func (c *conn) finish(f *flight, reply *frame.Reply) {
	c.mu.Lock()
	call := c.take(f)
	c.mu.Unlock()
	c.counters.calls.Add(1)
	if call == nil {
		return
	}
	if reply.Status != errs.OK {
		call.Err = errs.Wrap(frame.DecodeError(reply.Status, call.ReplyMeta), "%v at %s", reply.Kind, c.addr)
	}
	c.end(call)
}

// take lands a flight and gives its call, which the reader is about to end; nil
// when it was canceled. mu is held.
func (c *conn) take(f *flight) *Call {
	call := f.call
	f.call = nil
	c.land(f)
	if call != nil {
		c.running = f.id
	}
	return call
}

// end runs Done for a call that take gave.
func (c *conn) end(call *Call) {
	call.Done(call)
	c.mu.Lock()
	c.running = 0
	c.ended.Broadcast()
	c.mu.Unlock()
}

// sweep fails every call. It is the reader's last act: nothing is submitted or
// written any more. Calls are taken one by one, so that a Done may cancel
// others.
func (c *conn) sweep() {
	c.send.mu.Lock()
	c.mu.Lock()
	c.queue, c.send.batch = nil, nil
	n, err := len(c.table.slots), c.err
	c.mu.Unlock()
	c.send.mu.Unlock()
	for i := range n {
		var call *Call
		c.mu.Lock()
		if f := c.table.slots[i].flight; f != nil {
			call = c.take(f)
		}
		c.mu.Unlock()
		if call != nil {
			call.Err = err
			c.end(call)
		}
	}
}
