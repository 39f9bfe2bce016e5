package client

import (
	"context"
	"sync"
	"time"

	"strake/client/internal/read"
	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// shardCall is one request of a fetcher. It is handed over to the fetcher exactly
// once: by its connection, or by whoever could not submit it.
type shardCall struct {
	transport.Call
	f    *fetcher
	id   int
	req  *read.Request
	own  []byte // a degraded request's bytes
	body frame.ReadBody
	meta []byte

	mu       sync.Mutex
	conn     transport.Conn     // guarded by mu: where it was submitted; nil before
	canceled bool               // guarded by mu
	giveUp   context.CancelFunc // guarded by mu: ends the wait for a connection
}

// shardCalls keeps calls for reuse.
var shardCalls = sync.Pool{New: func() any {
	c := &shardCall{}
	c.Done = func(*transport.Call) { c.handOver() }
	return c
}}

// overloadPause is the wait before a call goes again to a connection whose
// window is full.
const overloadPause = 500 * time.Microsecond

// send sends a request. Its answer, or the failure to send it, comes as a call
// that is ready.
func (f *fetcher) send(ctx context.Context, r *read.Request) {
	c := f.call(r)
	s := f.v.cell.places.cached(r.Segment)
	if s == nil || int(r.Shard) >= len(s.shards) {
		c.finish(errs.New(errs.Unavailable, "", "segment %d has no placement of shard %d", r.Segment, r.Shard))
		return
	}
	c.body = frame.ReadBody{Shard: s.ref(r.Shard), Ranges: r.Ranges}
	c.meta = c.body.AppendTo(c.meta[:0])
	c.Meta = c.meta
	c.Request = frame.Request{Kind: frame.Read, Class: f.v.class}
	if deadline, ok := ctx.Deadline(); ok {
		c.Request.Deadline = max(time.Until(deadline), time.Microsecond)
	}
	if f.v.w != nil {
		c.Request.Epoch = f.v.w.epoch
	}
	if r.Headers {
		c.Request.Flags |= frame.Headers
		c.own = make([]byte, r.Bytes())
		c.Into = append(c.Into[:0], c.own)
	} else {
		c.Into = c.Into[:0]
		for _, g := range r.Scatter {
			c.Into = f.bufs.slice(c.Into, int(g.Offset), g.Length)
		}
	}
	c.submit(ctx, s.shards[r.Shard])
}

// call gives the call of a request; a request that is sent again has a new one.
func (f *fetcher) call(r *read.Request) *shardCall {
	for len(f.calls) <= r.ID {
		f.calls = append(f.calls, nil)
	}
	c := shardCalls.Get().(*shardCall)
	c.f, c.id, c.req, c.own, c.Err = f, r.ID, r, nil, nil
	c.conn, c.canceled, c.giveUp = nil, false, nil
	f.calls[r.ID] = c
	f.under++
	return c
}

// submit sends the call over a connection that works now; else it waits in the
// background, for a connection or for room in its window.
func (c *shardCall) submit(ctx context.Context, at place) {
	s := c.f.v.cell.shards
	if a, ok := s.cell.places.address(at.server); ok {
		if conn, ok := s.pool.Peek(a.data, layout.ClassDefault); ok && c.try(conn) == nil {
			return
		}
	}
	ctx, c.giveUp = context.WithCancel(ctx)
	go func() {
		defer c.giveUp()
		conn, err := s.connect(ctx, at.server)
		for err == nil {
			if err = c.try(conn); errs.KindOf(err) != errs.Overloaded {
				break
			}
			pause(ctx, overloadPause)
			err = ctx.Err()
		}
		if err != nil {
			c.finish(err)
		}
	}()
}

// try submits the call unless it was canceled meanwhile.
func (c *shardCall) try(conn transport.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.canceled {
		return errs.New(errs.Canceled, "", "not needed any more")
	}
	if err := submit(conn, &c.Call); err != nil {
		return err
	}
	c.conn = conn
	return nil
}

// cancel ends a request. When it returns its buffers are not in use any more.
func (f *fetcher) cancel(id int) {
	c := f.calls[id]
	c.mu.Lock()
	c.canceled = true
	conn, giveUp := c.conn, c.giveUp
	c.mu.Unlock()
	if conn != nil {
		conn.Cancel(&c.Call)
	} else if giveUp != nil {
		giveUp()
	}
}

// finish ends a call that was not submitted.
func (c *shardCall) finish(err error) {
	c.Err = err
	c.handOver()
}

// handOver gives the finished call to the reading goroutine.
func (c *shardCall) handOver() {
	f := c.f
	f.mu.Lock()
	f.ready = append(f.ready, c)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
