package simclient

import (
	"time"

	"strake/client/internal/read"
	"strake/internal/errs"
	"strake/internal/layout"
)

// lateAfter is how long a shard may take before others are asked beside it.
const lateAfter = 100 * time.Millisecond

// fetcher runs one read against the shards.
type fetcher struct {
	v      *Volume
	f      *Fiber
	buf    []byte
	op     read.Op
	calls  []*shardCall // by request ID
	ready  []*shardCall // answered, not looked at
	wake   func()       // of the wait under way
	late   bool
	tell   bool  // it is time to tell of lateness
	gone   error // the metadata service knows a segment no more
	failed error
	over   bool
}

// shardCall is one request of a fetcher.
type shardCall struct {
	req      *read.Request
	id       int
	gen      layout.Generation // asked for
	own      []byte            // a degraded request's bytes
	reply    *ChunkReply
	err      error
	canceled bool
}

// fetch reads extents from the shards into buf; lost units are decoded.
func (v *Volume) fetch(f *Fiber, buf []byte, pieces []piece) error {
	t := &fetcher{v: v, f: f, buf: buf}
	var list []read.Piece
	for _, p := range pieces {
		s, err := v.c.segment(f, p.Place.Segment)
		if err != nil {
			return err
		}
		list = append(list, read.Piece{Segment: s.ID, Volume: s.Volume, Geometry: s.Geometry, Offset: p.Place.Offset,
			Shape: p.Place.Shape, Index: layout.BlockCount(p.Place.Index), Count: p.Count, Into: int64(p.at)})
	}
	t.act(t.op.Start(v.c.session.Cell, list))
	v.c.after(lateAfter, func() {
		t.tell = true
		t.poke()
	})
	for !t.over {
		if !t.wait() {
			return errKilled
		}
	}
	if t.failed != nil && t.gone != nil {
		return t.gone
	}
	return t.failed
}

func (t *fetcher) poke() {
	if t.wake != nil && !t.over {
		wake := t.wake
		t.wake = nil
		wake()
	}
}

// wait waits for the next event and deals with it.
func (t *fetcher) wait() bool {
	if len(t.ready) == 0 && (!t.tell || t.late) {
		if !t.f.Wait(func(done func()) { t.wake = done }) {
			return false
		}
	}
	if t.tell && !t.late {
		t.tellLate()
	}
	for len(t.ready) > 0 && !t.over {
		c := t.ready[0]
		t.ready = t.ready[1:]
		if !c.canceled {
			t.replied(c)
		}
	}
	return !t.f.dead
}

// replied checks a reply and goes on with what follows from it.
func (t *fetcher) replied(c *shardCall) {
	if errs.KindOf(c.err) == errs.StaleEpoch && t.v.w != nil {
		t.v.w.leaseLost(errs.New(errs.StaleEpoch, "write", "a newer writer holds volume %d", t.v.ID))
	}
	if c.err == nil && c.reply.Generation != c.gen {
		c.err = errs.New(errs.StaleGeneration, "", "shard %d/%d has generation %d", c.req.Segment, c.req.Shard, c.reply.Generation)
	}
	t.act(t.op.Replied(c.id, c.req.Check(c.reply.Meta, t.into(c), c.err)))
}

// into puts a reply's bytes where they belong.
func (t *fetcher) into(c *shardCall) [][]byte {
	if c.err != nil {
		return nil
	}
	if c.req.Headers {
		c.own = c.reply.Bytes
		return [][]byte{c.own}
	}
	var bufs [][]byte
	rest := c.reply.Bytes
	for _, g := range c.req.Scatter {
		to := t.buf[g.Offset:][:g.Length]
		rest = rest[copy(to, rest):]
		bufs = append(bufs, to)
	}
	return bufs
}

func (t *fetcher) tellLate() {
	t.late = true
	n := len(t.calls)
	for id := 0; id < n && !t.over; id++ {
		if c := t.calls[id]; c != nil && !c.canceled {
			t.act(t.op.Late(id))
		}
	}
}

// act does what the read's step machine says; Decode and Refresh bring an event
// and come last.
func (t *fetcher) act(actions []read.Action) {
	var later []read.Action
	for _, a := range actions {
		switch a.Kind {
		case read.Send:
			t.send(a.Request)
		case read.Cancel:
			t.calls[a.Request.ID].canceled = true
		case read.Report:
			t.report(&a)
		case read.Decode, read.Refresh:
			later = append(later, a)
		case read.Done:
			t.over = true
		case read.Fail:
			t.over, t.failed = true, a.Err
		}
	}
	for _, a := range later {
		if t.over {
			return
		}
		if a.Kind == read.Decode {
			t.act(t.op.Decoded(a.Group, t.decode(a.Group)))
			continue
		}
		_, err := t.v.c.refresh(t.f, a.Segment)
		if errs.KindOf(err) == errs.NotFound {
			t.gone = err
		}
		t.act(t.op.Refreshed(a.Segment, err))
	}
}

// report tells the metadata service of a bad shard, once for each read.
func (t *fetcher) report(a *read.Action) {
	s := t.v.c.places[a.Segment]
	if s == nil || int(a.Shard) >= len(s.Shards) {
		return
	}
	t.v.c.watch.Rare("a bad shard reported by a reader")
	t.v.c.world.Meta(t.v.c.leader, &ReportShard{Ref: s.ref(a.Shard), Device: s.Shards[a.Shard].Device, Kind: a.Reason}, func(any, error) {})
}

// decode computes lost units from others.
func (t *fetcher) decode(g *read.Group) error {
	t.v.c.watch.Rare("a read decoded from other shards")
	coder, err := t.v.c.opts.Coders.For(g.Geometry())
	if err != nil {
		return err
	}
	var bytes [layout.MaxShards][]byte
	for s, r := range g.Peers() {
		if r != nil {
			bytes[s] = t.calls[r.ID].own
		}
	}
	return g.Decode(coder, t.buf, &bytes)
}

// send sends a request.
func (t *fetcher) send(r *read.Request) {
	for len(t.calls) <= r.ID {
		t.calls = append(t.calls, nil)
	}
	c := &shardCall{req: r, id: r.ID}
	t.calls[r.ID] = c
	done := func(reply *ChunkReply, err error) {
		c.reply, c.err = reply, err
		t.ready = append(t.ready, c)
		t.poke()
	}
	s := t.v.c.places[r.Segment]
	if s == nil || int(r.Shard) >= len(s.Shards) {
		c.reply, c.err = &ChunkReply{}, errs.New(errs.Unavailable, "", "segment %d has no placement of shard %d", r.Segment, r.Shard)
		t.ready = append(t.ready, c)
		return
	}
	c.gen = s.Shards[r.Shard].Generation
	request := &Read{Ref: s.ref(r.Shard), Ranges: r.Ranges, Headers: r.Headers}
	if t.v.w != nil && s.Volume == t.v.ID {
		request.Epoch = t.v.Epoch
	}
	t.v.c.chunk(s.Shards[r.Shard].Server, request, done)
}
