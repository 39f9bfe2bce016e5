package transport

import (
	"sync"
	"sync/atomic"
	"time"

	"strake/internal/errs"
	"strake/proto/frame"
)

// conn is a connection over a link.
//
// Goroutines: one reader, from start to Close, which runs every Done but those
// of Cancel; and at times one writer (see sender).
//
// Locks, in this order: send.mu, recv.mu, mu. Cancel separates a call from its
// flight only under all three, so whoever holds one of the first two may use
// the call's buffers. Each is held for no longer than one system call that does
// not wait.
//
// Invariants:
//
//	I1  A flight is in the table from Submit until its reply came, even when its
//	    call was canceled after it was sent.
//	I2  Done runs exactly once for each call that Submit took: by whoever takes
//	    the call from its flight.
//	I3  writing is set while the queue or the batch holds something.
type conn struct {
	link     link
	addr     string
	window   int
	idle     time.Duration
	counters *counters
	peer     frame.HelloReply // set before Dial returns

	send sender
	recv receiver

	mu       sync.Mutex
	err      error       // why it ended; guarded by mu, as is all to the blank line
	table    table       // calls under way
	queue    []*flight   // not yet written
	writing  bool        // somebody writes
	ticket   uint64      // whose turn it is to write
	outBytes int         // payload under way to the server
	touched  bool        // was used since the idle timer last looked
	running  uint64      // id of the call whose Done the reader runs; 0: none
	ended    *sync.Cond  // running changed
	timer    *time.Timer // idle timer

	inBytes, calls atomic.Int64 // payload expected, and flights; change under mu

	tryStep, waitStep, readStep func() bool // made once, so that a call allocates nothing

	writers sync.WaitGroup // Add under mu while err is nil
	reader  chan struct{}  // closed when the reader has ended
}

func newConn(l link, addr string, s Settings, n *counters) *conn {
	c := &conn{link: l, addr: addr, window: s.Window, idle: s.Idle, counters: n, reader: make(chan struct{})}
	c.ended = sync.NewCond(&c.mu)
	c.tryStep, c.waitStep, c.readStep = c.tryOnce, c.waitOnce, c.readOnce
	c.mu.Lock()
	c.timer = time.AfterFunc(s.Idle, c.checkIdle)
	c.mu.Unlock()
	go c.read()
	return c
}

// Submit sends a call.
func (c *conn) Submit(call *Call) error {
	f, _ := call.conn.(*flight)
	if f == nil || f.state.Load() == sending { // answered early: a batch still holds it
		f = &flight{}
		call.conn = f
	}
	out, in := total(call.Payload), total(call.Into)
	if out > frame.MaxPayload || in > frame.MaxPayload || len(call.Meta) > frame.MaxMeta {
		return errs.New(errs.TooLarge, "submit "+call.Request.Kind.String(), "%d bytes of fields, %d to send, %d to receive", len(call.Meta), out, in)
	}
	c.mu.Lock()
	if err := c.admit(f, out, in); err != nil {
		c.mu.Unlock()
		return err
	}
	f.call, f.out, f.in = call, out, in
	f.state.Store(waiting)
	call.Err, call.ReplyMeta = nil, call.ReplyMeta[:0]
	c.queue = append(c.queue, f)
	writer := !c.writing
	if writer {
		c.writing = true
		c.ticket++
	}
	ticket := c.ticket
	c.mu.Unlock()
	if writer {
		c.write(ticket)
	}
	return nil
}

// admit reserves window and id. mu is held.
func (c *conn) admit(f *flight, out, in int) error {
	if c.err != nil {
		return c.err
	}
	received := int(c.inBytes.Load())
	if c.outBytes+out > c.window && c.outBytes > 0 || received+in > c.window && received > 0 || !c.table.add(f) {
		return errs.New(errs.Overloaded, "submit to "+c.addr, "%d bytes to send and %d to receive are under way", c.outBytes, received)
	}
	c.touched = true
	c.outBytes += out
	c.inBytes.Add(int64(in))
	c.calls.Add(1)
	return nil
}

// land takes a flight out of the table. mu is held.
func (c *conn) land(f *flight) {
	c.table.remove(f.id)
	c.outBytes -= f.out
	c.inBytes.Add(int64(-f.in))
	c.calls.Add(-1)
}

// Cancel ends a call. It must not be called from the call's own Done, nor from
// two Dones on each other's call.
func (c *conn) Cancel(call *Call) {
	c.send.mu.Lock()
	c.recv.mu.Lock()
	c.mu.Lock()
	f, _ := call.conn.(*flight)
	flying := f != nil && f.call == call && c.table.get(f.id) == f
	if flying {
		c.detach(f)
	}
	c.recv.mu.Unlock()
	c.send.mu.Unlock()
	for !flying && f != nil && c.running == f.id {
		c.ended.Wait()
	}
	c.mu.Unlock()
	if flying {
		call.Err = errs.New(errs.Canceled, "call to "+c.addr, "")
		call.Done(call)
	}
}

// detach separates a call from its flight. All locks are held. A frame that has
// not begun is forgotten; one that has begun is finished, and its reply is read
// and thrown away.
func (c *conn) detach(f *flight) {
	switch {
	case f.state.Load() == waiting:
		c.queue = drop(c.queue, f)
		c.land(f)
	case f.state.Load() == sending && f.done == 0:
		c.send.batch = drop(c.send.batch, f)
		c.land(f)
	case f.state.Load() == sending && !f.own:
		f.keepRest()
	}
	f.call.conn = nil
	f.call = nil
}

// Window is how many payload bytes may be under way in each direction.
func (c *conn) Window() int { return c.window }

// Peer is the server's answer to hello.
func (c *conn) Peer() frame.HelloReply { return c.peer }

// Err tells why the connection ended.
func (c *conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and waits for its goroutines; it must not be called
// from a Done.
func (c *conn) Close() error {
	c.fail(errs.New(errs.Unavailable, "connection to "+c.addr, "closed by this side"))
	<-c.reader
	c.writers.Wait()
	return nil
}

// fail notes why the connection ends and wakes the reader, which fails all
// calls. Submit may be below us on the stack, so no Done is run here.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.timer.Stop()
	c.mu.Unlock()
	c.link.Close()
}

// checkIdle closes a connection that had no calls since it last looked.
func (c *conn) checkIdle() {
	c.mu.Lock()
	busy := c.touched || c.calls.Load() > 0
	c.touched = false
	if busy && c.err == nil {
		c.timer.Reset(c.idle)
	}
	c.mu.Unlock()
	if !busy {
		c.fail(errs.New(errs.Unavailable, "connection to "+c.addr, "closed after %v without calls", c.idle))
	}
}

// touch keeps an idle connection open for a while, for a caller about to use it.
func (c *conn) touch() {
	c.mu.Lock()
	c.touched = true
	c.mu.Unlock()
}

func total(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}
