package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/frame"
	"strake/proto/stripe"
)

const (
	testCell   = layout.CellID(0xce11)
	testDevice = layout.DeviceID(5)
)

// cluster is a server on loopback over a store.
type cluster struct {
	*Server
	store *fakeStore
	addr  string
}

// start serves stores on loopback until the test ends.
func start(t testing.TB, limits Limits, stores ...Store) *cluster {
	t.Helper()
	c := &cluster{}
	if len(stores) == 0 {
		c.store = newFakeStore()
		stores = []Store{c.store}
	}
	cfg := Config{Cell: testCell, Server: 3, Limits: limits}
	for i, s := range stores {
		cfg.Devices = append(cfg.Devices, Device{ID: testDevice + layout.DeviceID(i), Path: "d", Store: s})
	}
	c.Server = New(cfg)
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- c.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.Close(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	c.addr = l.Addr().String()
	return c
}

// peer is a raw client of the data plane.
type peer struct {
	t      testing.TB
	nc     net.Conn
	r      *bufio.Reader
	handle layout.TokenHandle
	id     uint64
}

// dial connects without a hello.
func (c *cluster) dial(t testing.TB) *peer {
	t.Helper()
	nc, err := tls.Policy{}.Dial(t.Context(), c.addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { nc.Close() })
	return &peer{t: t, nc: nc, r: bufio.NewReaderSize(nc, 1<<20)}
}

// connect says hello too.
func (c *cluster) connect(t testing.TB) *peer {
	t.Helper()
	p := c.dial(t)
	p.hello()
	return p
}

// hello asks for a handle, which later requests carry.
func (p *peer) hello() {
	p.t.Helper()
	body := frame.HelloBody{Cell: testCell, Volume: 7}
	rep, meta, _ := p.call(frame.Request{Kind: frame.Hello}, body.AppendTo(nil), nil)
	h, err := frame.DecodeHelloReply(meta)
	if rep.Status != errs.OK || err != nil || h.Server != 3 {
		p.t.Fatalf("hello: %v %+v (%v)", rep.Status, h, err)
	}
	p.handle = h.Handle
}

// encode gives a whole request; it sets id and token unless they are set.
func (p *peer) encode(r frame.Request, meta, payload []byte) []byte {
	if p.id++; r.ID == 0 {
		r.ID = p.id
	}
	if r.Token == 0 {
		r.Token = p.handle
	}
	r.Payload = len(payload)
	b := make([]byte, frame.HeaderLen)
	r.Encode(b, meta)
	return append(append(b, meta...), payload...)
}

func (p *peer) send(r frame.Request, meta, payload []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(p.encode(r, meta, payload)); err != nil {
		p.t.Fatal(err)
	}
}

// receive gives the next reply.
func (p *peer) receive() (frame.Reply, []byte, []byte) {
	p.t.Helper()
	rep, meta, payload, err := p.next()
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	return rep, meta, payload
}

func (p *peer) next() (rep frame.Reply, meta, payload []byte, err error) {
	head := make([]byte, frame.HeaderLen)
	if _, err = io.ReadFull(p.r, head); err != nil {
		return
	}
	if rep, err = frame.DecodeReply(head); err != nil {
		return
	}
	meta, payload = make([]byte, rep.Meta), make([]byte, rep.Payload)
	if _, err = io.ReadFull(p.r, meta); err != nil {
		return
	}
	if err = frame.Verify(head, meta); err != nil {
		return
	}
	_, err = io.ReadFull(p.r, payload)
	return
}

func (p *peer) call(r frame.Request, meta, payload []byte) (frame.Reply, []byte, []byte) {
	p.t.Helper()
	p.send(r, meta, payload)
	return p.receive()
}

// refused calls and wants a refusal of a kind.
func (p *peer) refused(want errs.Kind, r frame.Request, meta, payload []byte) {
	p.t.Helper()
	rep, text, _ := p.call(r, meta, payload)
	if rep.Status != want {
		p.t.Errorf("%v: got %v (%v), want %v", r.Kind, rep.Status, frame.DecodeError(rep.Status, text), want)
	}
}

// closed wants the server to close the connection without another reply.
func (p *peer) closed() {
	p.t.Helper()
	if rep, _, _, err := p.next(); err == nil {
		p.t.Errorf("got a reply to %v, want the connection closed", rep.Kind)
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		p.t.Errorf("the connection stays open")
	}
}

func ref(segment layout.SegmentID, shard layout.ShardIndex) frame.ShardRef {
	return frame.ShardRef{ShardKey: layout.ShardKey{Segment: segment, Shard: shard}, Generation: 2}
}

var testGeometry = layout.Geometry{K: 1, M: 1}

// shard makes a shard of 1+1 in a store.
func shard(t testing.TB, s Store, r frame.ShardRef, length layout.ShardOffset) {
	t.Helper()
	if err := s.Create(store.ShardSpec{Key: r.ShardKey, Generation: r.Generation, Cell: testCell, Volume: 7, Epoch: 1,
		Geometry: testGeometry, Length: length}); err != nil {
		t.Fatal(err)
	}
}

// unit makes the meta of an append of a unit of shard 0 and its bytes.
func unit(r frame.ShardRef, seq layout.Seq, offset layout.ShardOffset, n int) (meta, payload []byte) {
	payload = make([]byte, n)
	for i := range payload {
		payload[i] = byte(i>>12 + i + int(seq))
	}
	crcs := stripe.AppendBlockCRCs(nil, payload)
	h := stripe.Header{Cell: testCell, Volume: 7, Segment: r.Segment, Shard: r.Shard, Geometry: testGeometry, Epoch: 1, Seq: seq,
		Offset: offset, Shape: layout.Shape{Unit: uint32(n), Data: 1}, Blocks: uint32(n / layout.BlockSize),
		Ranges: []stripe.Range{{Start: layout.BlockNumber(offset) / layout.BlockSize, Count: uint32(n / layout.BlockSize), Kind: stripe.Write}}, CRCs: append(crcs, crcs...)}
	return (&frame.AppendBody{Shard: r, Header: h.AppendTo(nil)}).AppendTo(nil), payload
}

func readMeta(r frame.ShardRef, ranges ...frame.ReadRange) []byte {
	return (&frame.ReadBody{Shard: r, Ranges: ranges}).AppendTo(nil)
}

func syncMeta(incarnation layout.Incarnation, refs ...frame.ShardRef) []byte {
	return (&frame.SyncBody{Incarnation: incarnation, Device: testDevice, Shards: refs}).AppendTo(nil)
}

func (c *cluster) tryDial(t testing.TB) (net.Conn, error) {
	return tls.Policy{}.Dial(t.Context(), c.addr)
}

// waitFor waits until a condition that another goroutine brings about holds.
func waitFor(t testing.TB, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("did not come about within 10 s")
		}
	}
}
