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

const (
	// overloadedTries is how often a request that a server refused as overloaded
	// is sent again, and overloadedPause the wait before the first of them; it
	// doubles. After that other shards are asked.
	overloadedTries = 5
	overloadedPause = 2 * time.Millisecond
)

// shardCall is one request of a fetcher. It is handed over to the fetcher exactly
// once for each time it is sent: by its connection, or by whoever could not
// submit it.
type shardCall struct {
	transport.Call
	f    *fetcher
	id   int
	req  *read.Request
	to   target
	own  []byte // a degraded request's bytes, in room
	room []byte // kept with the call
	body frame.ReadBody
	meta []byte

	// Of the reading goroutine.
	sentAt   time.Time
	lateAt   time.Time
	tries    int  // sent again after Overloaded
	late     bool // Late was told
	answered bool // handed over

	mu       sync.Mutex
	conn     transport.Conn     // guarded by mu: where it was submitted; nil before
	canceled bool               // guarded by mu; written by the reading goroutine
	giveUp   context.CancelFunc // of the reading goroutine: ends the wait for a connection
}

// shardCalls keeps calls for reuse.
var shardCalls = sync.Pool{New: func() any {
	c := &shardCall{}
	c.Done = func(*transport.Call) { c.handOver() }
	return c
}}

// send sends a request. Its answer, or the failure to send it, comes as a call
// that is ready.
func (f *fetcher) send(ctx context.Context, r *read.Request) {
	c := f.call(r)
	s := f.segment(r.Segment)
	if int(r.Shard) >= len(s.shards) {
		c.finish(errs.New(errs.Unavailable, "", "segment %d has no placement of shard %d", r.Segment, r.Shard))
		return
	}
	c.to = target{s.shards[r.Shard].server, r.Segment}
	c.body = frame.ReadBody{Shard: s.ref(r.Shard), Ranges: r.Ranges}
	c.meta = c.body.AppendTo(c.meta[:0])
	c.Meta = c.meta
	c.Request = frame.Request{Kind: frame.Read, Class: f.class, Tenant: f.v.tenant}
	if deadline, ok := ctx.Deadline(); ok {
		c.Request.Deadline = max(time.Until(deadline), time.Microsecond)
	}
	if f.v.w != nil && s.volume == f.v.id { // an ancestor's segments know its epochs, not this branch's
		c.Request.Epoch = f.v.w.lease.epoch
	}
	c.Into = c.Into[:0]
	if r.Headers {
		c.Request.Flags |= frame.Headers
		if cap(c.room) < r.Bytes() {
			c.room = make([]byte, r.Bytes())
		}
		c.own = c.room[:r.Bytes()]
		c.Into = append(c.Into, c.own)
		f.extra++
		f.v.stats.extraRequests.Add(1)
		f.v.stats.extraBytes.Add(uint64(r.Bytes()))
	}
	f.v.stats.requests.Add(1)
	for _, g := range r.Scatter {
		c.Into = f.bufs.slice(c.Into, int(g.Offset), g.Length)
	}
	c.sentAt = time.Now()
	c.lateAt = c.sentAt.Add(f.v.cell.shards.pace.sent(c.to.server, r.Bytes(), r.Headers))
	c.submit(ctx)
}

// call gives the call of a request; a request that is sent again has a new one.
func (f *fetcher) call(r *read.Request) *shardCall {
	for len(f.calls) <= r.ID {
		f.calls = append(f.calls, nil)
	}
	c := shardCalls.Get().(*shardCall)
	c.f, c.id, c.req, c.own, c.Err, c.Reply = f, r.ID, r, nil, nil, frame.Reply{}
	c.conn, c.canceled, c.giveUp = nil, false, nil
	c.tries, c.late, c.answered = 0, false, false
	f.calls[r.ID] = c
	f.under++
	return c
}

// submit sends the call over a connection that works now; else it waits in the
// background, for a connection or for room in its window.
func (c *shardCall) submit(ctx context.Context) {
	shards := c.f.v.cell.shards
	if conn := shards.peek(c.to.server); conn != nil && c.try(conn) == nil {
		return
	}
	c.later(ctx, 0)
}

// later sends the call in the background, after a pause.
func (c *shardCall) later(ctx context.Context, after time.Duration) {
	shards, to := c.f.v.cell.shards, c.to
	ctx, cancel := context.WithCancel(ctx)
	c.giveUp = cancel
	started := shards.work.start(func() {
		defer cancel()
		if after > 0 {
			pause(ctx, after)
		}
		if err := shards.deliver(ctx, to, c.try); err != nil {
			c.finish(err)
		}
	})
	if !started {
		cancel()
		c.finish(errs.New(errs.Closed, "", "the cell is closed"))
	}
}

// again sends a call again that the server refused as overloaded.
func (f *fetcher) again(ctx context.Context, c *shardCall) {
	c.mu.Lock()
	c.conn = nil
	c.mu.Unlock()
	c.Err, c.answered = nil, false
	f.under++
	c.later(ctx, overloadedPause<<(c.tries-1))
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

// broke tells whether the connection ended that a finished call went over.
func (c *shardCall) broke() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil && c.conn.Err() != nil
}

// cancel ends a request. When it returns its buffers are not in use any more.
func (f *fetcher) cancel(id int) {
	c := f.calls[id]
	c.mu.Lock()
	c.canceled = true
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.Cancel(&c.Call)
	} else if c.giveUp != nil {
		c.giveUp()
	}
	if !c.late {
		return
	}
	if now := time.Now(); f.v.cell.shards.pace.outrun(c.to.server, c.req.Bytes(), now.Sub(c.sentAt), now) {
		f.probe(c)
	}
}

// probe has a server that became suspect by this call probed.
func (f *fetcher) probe(c *shardCall) {
	var device layout.DeviceID
	if s := f.segment(c.to.segment); s != nil && int(c.body.Shard.Shard) < len(s.shards) {
		device = s.shards[c.body.Shard.Shard].device
	}
	f.v.cell.shards.probe(c.to, device, c.body.Shard, c.body.Ranges[0])
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
	f.nudge()
}
