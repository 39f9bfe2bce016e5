package client

import (
	"context"
	"sync"
	"time"

	"strake/client/internal/read"
	"strake/internal/errs"
	"strake/internal/layout"
)

// lateAfter is how long a shard may take before others are asked for the same
// bytes beside it.
const lateAfter = 100 * time.Millisecond

// fetcher runs one read against the shards. The goroutine that reads owns it:
// it plans, sends, waits for replies, checks and decodes. Connections only hand
// finished calls over, under mu. Fetchers are reused, so that a small read
// allocates nothing.
type fetcher struct {
	v        *Volume
	bufs     vec
	op       read.Op
	pieces   []read.Piece
	calls    []*shardCall // by request ID
	under    int          // calls not handed over yet
	timer    *time.Timer
	begun    time.Time
	late     bool  // Late was told for all that was under way then
	gone     error // the metadata service knows a segment no more
	failed   error
	over     bool
	degraded bool

	mu    sync.Mutex
	ready []*shardCall  // guarded by mu: calls whose Done has run
	wake  chan struct{} // one slot
}

var fetchers = sync.Pool{New: func() any {
	f := &fetcher{wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	f.timer.Stop()
	return f
}}

// fetch reads extents from the shards into bufs; lost units are decoded.
func (v *Volume) fetch(ctx context.Context, bufs vec, pieces []readPiece) error {
	f := fetchers.Get().(*fetcher)
	f.v, f.bufs, f.begun = v, bufs, time.Now()
	err := f.run(ctx, pieces)
	f.reset()
	fetchers.Put(f)
	return err
}

func (f *fetcher) reset() {
	f.v, f.bufs, f.gone, f.failed = nil, nil, nil, nil
	f.late, f.over, f.degraded = false, false, false
	f.pieces = f.pieces[:0]
	f.timer.Stop()
}

func (f *fetcher) run(ctx context.Context, pieces []readPiece) error {
	for _, p := range pieces {
		s, err := f.v.cell.places.segment(ctx, p.Place.Segment)
		if err != nil {
			return err
		}
		f.pieces = append(f.pieces, read.Piece{Segment: s.id, Volume: s.volume, Geometry: s.geometry, Offset: p.Place.Offset,
			Shape: p.Place.Shape, Index: layout.BlockCount(p.Place.Index), Count: p.Count, Into: int64(p.at)})
	}
	f.act(ctx, f.op.Start(f.v.cell.session.name, f.pieces))
	f.timer.Reset(lateAfter)
	for !f.over {
		f.wait(ctx)
	}
	f.drain()
	if f.failed != nil && f.gone != nil {
		return f.gone
	}
	return f.failed
}

// wait waits for the next event and deals with it.
func (f *fetcher) wait(ctx context.Context) {
	select {
	case <-f.wake:
	case <-f.timer.C:
		f.tellLate(ctx)
		return
	case <-ctx.Done():
		f.act(ctx, f.op.Abort(errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for the shards")))
		return
	}
	for c := f.take(); c != nil && !f.over; c = f.take() {
		f.replied(ctx, c)
	}
}

// take gives a call whose Done has run, nil when there is none now.
func (f *fetcher) take() *shardCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ready) == 0 {
		return nil
	}
	c := f.ready[0]
	f.ready = append(f.ready[:0], f.ready[1:]...)
	f.under--
	return c
}

// replied checks a reply and goes on with what follows from it.
func (f *fetcher) replied(ctx context.Context, c *shardCall) {
	if c.canceled {
		return
	}
	if errs.KindOf(c.Err) == errs.StaleEpoch && f.v.w != nil {
		f.v.lose(errs.New(errs.StaleEpoch, "write "+f.v.name, "a newer writer holds the volume"))
	}
	if c.Err == nil && c.Reply.Generation != c.body.Shard.Generation {
		c.Err = errs.New(errs.StaleGeneration, "", "shard %v has generation %d, its placement says %d", c.body.Shard.ShardKey, c.Reply.Generation, c.body.Shard.Generation)
	}
	verdict := c.req.Check(c.ReplyMeta, c.Into, c.Err)
	f.act(ctx, f.op.Replied(c.id, verdict))
}

// tellLate tells that all that is under way takes too long.
func (f *fetcher) tellLate(ctx context.Context) {
	if f.late {
		return
	}
	f.late = true
	n := len(f.calls)
	for id := 0; id < n && !f.over; id++ {
		if c := f.calls[id]; c != nil && !c.canceled {
			f.act(ctx, f.op.Late(id))
		}
	}
}

// act does what the read's step machine says. Actions are valid until the next
// event, and Decode and Refresh bring one: these come last in a list or are
// collected first.
func (f *fetcher) act(ctx context.Context, actions []read.Action) {
	var later []read.Action
	for _, a := range actions {
		switch a.Kind {
		case read.Send:
			f.send(ctx, a.Request)
		case read.Cancel:
			f.cancel(a.Request.ID)
		case read.Report:
			f.v.cell.reports.add(f.v.cell, a.Segment, a.Shard, a.Reason, a.Offset)
		case read.Decode, read.Refresh:
			later = append(later, a)
		case read.Done:
			f.over = true
		case read.Fail:
			f.over, f.failed = true, a.Err
		}
	}
	for _, a := range later {
		if f.over {
			return
		}
		if a.Kind == read.Decode {
			f.act(ctx, f.op.Decoded(a.Group, f.decode(a.Group)))
			continue
		}
		_, err := f.v.cell.places.refresh(ctx, a.Segment)
		if errs.KindOf(err) == errs.NotFound {
			f.gone = err
		}
		f.act(ctx, f.op.Refreshed(a.Segment, err))
	}
}

// decode computes lost units from others.
func (f *fetcher) decode(g *read.Group) error {
	if !f.degraded {
		f.degraded = true
		f.v.stats.degraded.Add(1)
	}
	coder, err := f.v.cell.shards.coders.For(g.Geometry())
	if err != nil {
		return err
	}
	var bytes [layout.MaxShards][]byte
	for s, r := range g.Peers() {
		if r != nil {
			bytes[s] = f.calls[r.ID].own
		}
	}
	if len(f.bufs) == 1 {
		return g.Decode(coder, f.bufs[0], &bytes)
	}
	whole := make([]byte, f.bufs.size())
	err = g.Decode(coder, whole, &bytes)
	for _, s := range g.Spans() {
		f.bufs.copyAt(whole[s.Offset:][:s.Length], int(s.Offset))
	}
	return err
}

// drain waits until no call is under way: then no buffer is in use any more.
func (f *fetcher) drain() {
	for f.under > 0 {
		if f.take() == nil {
			<-f.wake
		}
	}
	select {
	case <-f.wake:
	default:
	}
	for _, c := range f.calls {
		if c != nil {
			shardCalls.Put(c)
		}
	}
	clear(f.calls)
	f.calls = f.calls[:0]
}
