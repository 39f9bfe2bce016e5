package client

import (
	"context"
	"sync/atomic"
	"time"

	"strake/client/internal/transport"
	"strake/internal/erasure"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/frame"
	"strake/proto/stripe"
)

const (
	// windowPause is the wait before a call goes again to a connection whose window
	// is full.
	windowPause = 500 * time.Microsecond
	// pingTimeout is how long a server may take to answer a ping before it counts
	// as silent.
	pingTimeout = time.Second
)

// shardServers reaches the chunk servers' data plane.
type shardServers struct {
	cell    *Cell
	pool    *transport.Pool
	coders  *erasure.Set
	builder *build.Builder
	pace    *pace
	watch   watch
	work    crew // calls that wait for a connection, and probes

	readAt atomic.Int64 // Unix ns: when a server last said that others read beside background work
}

// readingFor is how long what a server said of others' reads counts.
const readingFor = time.Second

// noteReading takes in what a server says of others' reads, in its answer to background work.
func (s *shardServers) noteReading(now time.Time) { s.readAt.Store(now.UnixNano()) }

// reading tells whether others read beside background work, by the servers' latest answers.
func (s *shardServers) reading(now time.Time) bool {
	return now.UnixNano()-s.readAt.Load() < int64(readingFor)
}

// target is a server, and a segment by which its address can be asked for.
type target struct {
	server  layout.ServerID
	segment layout.SegmentID
}

func newShardServers(c *Cell) *shardServers {
	t := c.cfg.transport
	if t == nil {
		t = transport.NewTCP(tls.Policy{}, transport.Settings{})
	}
	coders := &erasure.Set{}
	hello := func(string) frame.HelloBody { return frame.HelloBody{Cell: c.session.name} }
	s := &shardServers{cell: c, pool: transport.NewPool(t, transport.PoolOptions{Hello: hello}),
		coders: coders, builder: build.New(coders), pace: newPace()}
	s.watch.start()
	return s
}

// close ends all connections; the cell's life has ended.
func (s *shardServers) close() {
	s.pool.Close()
	s.work.close()
	s.watch.stop()
}

// submit sends a call over a connection, under the token that it gave.
func submit(conn transport.Conn, call *transport.Call) error {
	call.Request.Token = conn.Peer().Handle
	return conn.Submit(call)
}

// submit sends a call to a server. call.Done runs exactly once, also when the
// server can't be reached; it may run before submit returns. It waits for
// nothing: a connection that has to be made, or room in its window, is waited
// for in the background, until ctx ends.
func (s *shardServers) submit(ctx context.Context, t target, call *transport.Call) {
	if conn := s.peek(t.server); conn != nil && submit(conn, call) == nil {
		return
	}
	fail := func(err error) {
		call.Err = err
		call.Done(call)
	}
	if !s.work.start(func() {
		if err := s.deliver(ctx, t, func(conn transport.Conn) error { return submit(conn, call) }); err != nil {
			fail(err)
		}
	}) {
		fail(errs.New(errs.Closed, "", "the cell is closed"))
	}
}

// deliver waits for a connection and for room in its window.
func (s *shardServers) deliver(ctx context.Context, t target, submit func(transport.Conn) error) error {
	conn, err := s.connect(ctx, t)
	if err != nil {
		return err
	}
	for {
		err := submit(conn)
		if errs.KindOf(err) != errs.Overloaded {
			return err
		}
		pause(ctx, windowPause)
		if ctx.Err() != nil {
			return errs.Wrap(ctx.Err(), "wait for room on the connection to server %d", t.server)
		}
	}
}

// peek gives a server's connection if it works now, else nil.
func (s *shardServers) peek(server layout.ServerID) transport.Conn {
	a, ok := s.cell.places.address(server)
	if !ok {
		return nil
	}
	conn, ok := s.pool.Peek(a.data, layout.ClassDefault)
	if !ok || conn.Peer().Server != server {
		return nil
	}
	return conn
}

// connect gives a working connection to a server. When there is none, or another
// server is found there, the address may have changed: then it is asked for.
func (s *shardServers) connect(ctx context.Context, t target) (transport.Conn, error) {
	conn, err := s.dial(ctx, t.server)
	if err != nil && ctx.Err() == nil && s.cell.places.moved(ctx, t) {
		conn, err = s.dial(ctx, t.server)
	}
	return conn, errs.Wrap(err, "server %d", t.server)
}

func (s *shardServers) dial(ctx context.Context, server layout.ServerID) (transport.Conn, error) {
	a, ok := s.cell.places.address(server)
	if !ok {
		return nil, errs.New(errs.Unavailable, "", "no address is known")
	}
	conn, err := s.pool.Get(ctx, a.data)
	if err != nil {
		return nil, err
	}
	if other := conn.Peer().Server; other != server {
		return nil, errs.New(errs.Unavailable, "", "server %d answers at %s", other, a.data)
	}
	return conn, nil
}

// do sends a call and waits for its answer, or until ctx ends: then no buffer of
// the call is in use any more.
func (s *shardServers) do(ctx context.Context, t target, call *transport.Call) error {
	done := make(chan struct{})
	call.Done = func(*transport.Call) { close(done) }
	var conn transport.Conn
	err := s.deliver(ctx, t, func(c transport.Conn) error {
		conn = c
		return submit(c, call)
	})
	if err != nil {
		return err
	}
	return await(ctx, t.server, conn, call, done)
}

// await waits until a call that was submitted is done, or until ctx ends.
func await(ctx context.Context, server layout.ServerID, conn transport.Conn, call *transport.Call, done <-chan struct{}) error {
	select {
	case <-done:
	case <-ctx.Done():
		conn.Cancel(call)
		<-done
	}
	if errs.KindOf(call.Err) == errs.Canceled && ctx.Err() != nil {
		return errs.Wrap(ctx.Err(), "wait for server %d", server)
	}
	return call.Err
}

// silent tells whether a server does not even answer a ping, over a connection of
// its own, where no payload stands before it. A server that is only slow does.
func (s *shardServers) silent(ctx context.Context, server layout.ServerID) bool {
	a, ok := s.cell.places.address(server)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	conn, err := s.pool.GetLane(ctx, a.data, layout.ClassInference)
	if err == nil {
		done := make(chan struct{})
		call := &transport.Call{Request: frame.Request{Kind: frame.Ping, Class: layout.ClassInference}}
		call.Done = func(*transport.Call) { close(done) }
		if err = submit(conn, call); err == nil {
			err = await(ctx, server, conn, call, done)
		}
	}
	return errs.KindOf(err) == errs.Deadline
}

// list reads a shard's stripe headers up to a seq (0: all), and checks that they
// are this shard's.
func (s *shardServers) list(ctx context.Context, seg *segment, shard layout.ShardIndex, last layout.Seq) ([]*stripe.Header, error) {
	var out []*stripe.Header
	for from := layout.Seq(1); from != 0; {
		body := frame.ListBody{Shard: seg.ref(shard), From: from, Most: listPiece}
		buf := make([]byte, listPiece+stripe.MaxLen)
		call := &transport.Call{Request: frame.Request{Kind: frame.List, Class: layout.ClassInference}, Meta: body.AppendTo(nil), Into: [][]byte{buf}}
		if err := s.doWithin(ctx, listTimeout, target{seg.shards[shard].server, seg.id}, call); err != nil {
			return nil, err
		}
		reply, err := frame.DecodeListReply(call.ReplyMeta)
		if err != nil {
			return nil, err
		}
		if reply.Next != 0 && reply.Next <= from {
			return nil, errs.New(errs.Corrupt, "", "shard %d/%d goes on with seq %d after %d", seg.id, shard, reply.Next, from)
		}
		if out, err = appendHeaders(out, buf[:call.Reply.Payload], seg, shard, last); err != nil {
			return nil, err
		}
		from = reply.Next
		if last != 0 && from > last {
			break
		}
	}
	return out, nil
}

func (s *shardServers) doWithin(ctx context.Context, d time.Duration, t target, call *transport.Call) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.do(ctx, t, call)
}

// appendHeaders decodes a list of headers and checks what each says of itself.
func appendHeaders(out []*stripe.Header, b []byte, seg *segment, shard layout.ShardIndex, last layout.Seq) ([]*stripe.Header, error) {
	for len(b) > 0 {
		h, n, err := stripe.Decode(b)
		if err != nil {
			return nil, err
		}
		b = b[n:]
		if h.Segment != seg.id || h.Shard != shard || h.Geometry != seg.geometry || h.Volume != seg.volume {
			return nil, errs.New(errs.Corrupt, "", "shard %d/%d lists the header of volume %d, shard %d/%d", seg.id, shard, h.Volume, h.Segment, h.Shard)
		}
		if last == 0 || h.Seq <= last {
			out = append(out, h)
		}
	}
	return out, nil
}
