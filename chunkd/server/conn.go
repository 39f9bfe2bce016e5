package server

import (
	"net"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// conn is one connection. All fields but those under writing belong to the
// goroutine that runs serve.
type conn struct {
	srv     *Server
	nc      net.Conn
	sock    *socket // over nc
	in      input
	out     batch // replies made on this goroutine, not yet written
	current *request
	grants  []grant // by handle, counted from 1

	slots chan struct{}  // one for each request that has a goroutine of its own
	jobs  sync.WaitGroup // those goroutines
	lane  lane

	// writing is held during writes, so that frames of several goroutines do not
	// mix; a peer that takes nothing ends it with the write's deadline.
	writing  sync.Mutex
	deadline time.Time // guarded by writing
}

// grant is what a token allows; its handle is its place in the list.
type grant struct {
	volume   layout.VolumeID
	counters *VolumeCounters
}

// maxGrants bounds the tokens that one connection can say.
const maxGrants = 1024

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, sock: newSocket(nc, &s.Counters.Calls), current: s.getRequest(), slots: make(chan struct{}, s.limits.ConnRequests)}
	c.in = input{nc: nc, sock: c.sock, pool: &s.pool, copied: &s.Counters.CopiedBytes, idle: s.limits.Idle, received: time.Now()}
	c.out = batch{pool: &s.pool, memory: s.memory}
	return c
}

// serve answers requests until the peer leaves, errs or is idle, or the server
// drains. It returns once no goroutine of the connection is left.
func (c *conn) serve() (err error) {
	defer func() { c.end(err) }()
	for {
		if !c.in.complete() || c.out.full() {
			if err := c.flush(&c.out); err != nil {
				return err
			}
		}
		if err := c.receive(); err != nil {
			return err
		}
		if err := c.dispatch(c.current); err != nil {
			return err
		}
	}
}

// receive takes the next request's header and meta. A payload stays where it is.
func (c *conn) receive() error {
	if err := c.in.need(frame.HeaderLen); err != nil {
		return err
	}
	h, err := frame.DecodeRequest(c.in.buffered())
	if err != nil {
		return err
	}
	if err := c.checkLengths(&h); err != nil {
		return err
	}
	n := frame.HeaderLen + h.Meta
	c.in.sparing = n+h.Payload > bufferLen
	if err := c.in.need(n); err != nil {
		return noEOF(err)
	}
	b := c.in.buffered()
	if err := frame.Verify(b, b[frame.HeaderLen:n]); err != nil {
		return err
	}
	h.Class = c.srv.classOf(h.Class)
	c.current.begin(h, c.in.received)
	c.current.meta = b[frame.HeaderLen:n]
	c.in.consume(n)
	return nil
}

// checkLengths holds a frame's lengths against its kind, before memory is given
// to it; a peer that has not said hello gets next to none.
func (c *conn) checkLengths(h *frame.Request) error {
	meta, payload := metaCaps[h.Kind], 0
	switch {
	case len(c.grants) == 0:
		meta = min(meta, metaCaps[frame.Hello])
	case h.Kind == frame.Append:
		payload = frame.MaxPayload
	}
	if h.Meta > meta || h.Payload > payload || h.Payload%layout.BlockSize != 0 {
		return errs.New(errs.TooLarge, "receive "+h.Kind.String(), "meta of %d and payload of %d bytes, at most %d and %d (whole blocks) are allowed",
			h.Meta, h.Payload, meta, payload)
	}
	return nil
}

// metaCaps bound meta by kind.
var metaCaps = [...]int{
	frame.Hello:  20 + frame.MaxToken,
	frame.Append: frame.MaxMeta,
	frame.Read:   20 + 12*frame.MaxReadRanges,
	frame.Sync:   20 + 16*frame.MaxSyncShards,
	frame.List:   28,
	frame.Ping:   0,
}

// flush writes a batch and gives its buffers back, whether or not it succeeds.
func (c *conn) flush(b *batch) error {
	if b.bytes == 0 {
		return nil
	}
	defer b.clear()
	c.writing.Lock()
	defer c.writing.Unlock()
	now := time.Now()
	if limit := c.srv.limits.Write; c.deadline.Sub(now) < limit/2 {
		c.deadline = now.Add(limit)
		c.nc.SetWriteDeadline(c.deadline)
	}
	var err error
	if len(b.runs) == 0 {
		err = c.sock.Write(b.slab.bytes[:b.used])
	} else {
		b.cut()
		err = c.sock.Writev(b.runs)
	}
	if err != nil {
		c.nc.Close()
	}
	return err
}

// end waits for the connection's goroutines. In good order (a drain) their
// replies still go out; after an error there is nobody to read them.
func (c *conn) end(err error) {
	if err == errDraining {
		c.flush(&c.out)
	} else {
		c.nc.Close()
	}
	c.jobs.Wait()
	c.nc.Close()
	c.out.clear()
	c.in.release()
	c.srv.putRequest(c.current)
	c.srv.ended(c, err)
}
