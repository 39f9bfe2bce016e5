package client

import (
	"context"

	"strake/client/internal/transport"
	"strake/internal/erasure"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// shardServers reaches the chunk servers' data plane.
type shardServers struct {
	cell    *Cell
	pool    *transport.Pool
	coders  *erasure.Set
	builder *build.Builder
}

func newShardServers(c *Cell) *shardServers {
	t := c.cfg.transport
	if t == nil {
		t = transport.NewTCP(tls.Policy{}, transport.Settings{})
	}
	coders := &erasure.Set{}
	hello := func(string) frame.HelloBody { return frame.HelloBody{Cell: c.session.name} }
	return &shardServers{cell: c, pool: transport.NewPool(t, transport.PoolOptions{Hello: hello}), coders: coders, builder: build.New(coders)}
}

func (s *shardServers) close() { s.pool.Close() }

// submit sends a call over a connection, under the token that it gave.
func submit(conn transport.Conn, call *transport.Call) error {
	call.Request.Token = conn.Peer().Handle
	return conn.Submit(call)
}

// submit sends a call to a server. call.Done runs exactly once, also when the
// server can't be reached; it may run before submit returns. It waits for
// nothing: a connection that has to be made is made in the background.
func (s *shardServers) submit(ctx context.Context, server layout.ServerID, call *transport.Call) {
	if a, ok := s.cell.places.address(server); ok {
		if conn, ok := s.pool.Peek(a.data, layout.ClassDefault); ok && submit(conn, call) == nil {
			return
		}
	}
	go func() {
		conn, err := s.connect(ctx, server)
		if err == nil {
			err = submit(conn, call)
		}
		if err != nil {
			call.Err = err
			call.Done(call)
		}
	}()
}

// connect gives a working connection to a server. When it can't, the address may
// have changed: the next attempt asks again.
func (s *shardServers) connect(ctx context.Context, server layout.ServerID) (transport.Conn, error) {
	a, ok := s.cell.places.address(server)
	if !ok {
		return nil, errs.New(errs.Unavailable, "", "no address known for server %d", server)
	}
	conn, err := s.pool.Get(ctx, a.data)
	return conn, errs.Wrap(err, "server %d", server)
}

// do sends a call and waits for its answer, or until ctx ends: then no buffer of
// the call is in use any more.
func (s *shardServers) do(ctx context.Context, server layout.ServerID, call *transport.Call) error {
	conn, err := s.connect(ctx, server)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	call.Done = func(*transport.Call) { close(done) }
	if err := submit(conn, call); err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		conn.Cancel(call)
		<-done
	}
	return call.Err
}

// list reads a shard's stripe headers up to a seq (0: all), and checks that they
// are this shard's.
func (s *shardServers) list(ctx context.Context, seg *segment, shard layout.ShardIndex, last layout.Seq) ([]*stripe.Header, error) {
	var out []*stripe.Header
	for from := layout.Seq(1); from != 0; {
		body := frame.ListBody{Shard: seg.ref(shard), From: from, Most: listPiece}
		buf := make([]byte, listPiece+stripe.MaxLen)
		call := &transport.Call{Request: frame.Request{Kind: frame.List, Class: layout.ClassInference}, Meta: body.AppendTo(nil), Into: [][]byte{buf}}
		if err := s.do(ctx, seg.shards[shard].server, call); err != nil {
			return nil, err
		}
		reply, err := frame.DecodeListReply(call.ReplyMeta)
		if err != nil {
			return nil, err
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
