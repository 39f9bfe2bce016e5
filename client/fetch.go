package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"strake/client/internal/read"
	"strake/internal/errs"
	"strake/internal/layout"
)

// fetchTries is how often a read is made again: over new connections, or with the
// servers that it went around.
const fetchTries = 4

// fetcher runs one read against the shards. The goroutine that reads owns it:
// it plans, sends, waits for replies, checks and decodes. Connections only hand
// finished calls over, under mu. Fetchers are reused, so that a small read
// allocates nothing.
type fetcher struct {
	v        *Volume
	class    layout.Class
	bufs     vec
	op       read.Op
	pieces   []read.Piece
	segments []*segment   // of the pieces, as they were placed when last asked
	calls    []*shardCall // by request ID
	under    int          // calls not handed over yet
	watched  int          // its place in the watch's list
	lateAt   atomic.Int64 // the earliest time that a call is late, of the watch; 0: none
	late     atomic.Bool  // that time has come
	gone     error        // the metadata service knows a segment no more
	failed   error
	over     bool
	degraded bool
	hedged   bool
	extra    int    // requests sent for what other shards should have given
	broke    bool   // a connection ended under a call
	nowhere  bool   // a shard was not where its placement says
	away     bool   // a server was out of reach
	whole    []byte // for decoding into a buffer in pieces

	mu    sync.Mutex
	ready []*shardCall  // guarded by mu: calls whose Done has run
	wake  chan struct{} // one slot
}

var fetchers = sync.Pool{New: func() any { return &fetcher{wake: make(chan struct{}, 1)} }}

// fetch reads extents from the shards into bufs; lost units are decoded. Silent
// servers are gone around; if that is not enough they are asked all the same. Where
// connections broke under a read that can't do without, it is made again over new
// ones: when all addresses change, all connections end, and no server is lost. They
// end one after another, as they are used, hence more than one attempt. Servers out of
// reach that a read can't do without are waited for a while.
func (v *Volume) fetch(ctx context.Context, bufs vec, pieces []readPiece) error {
	return v.fetchAs(ctx, v.class, bufs, pieces)
}

// fetchAs is fetch in a class of its own.
func (v *Volume) fetchAs(ctx context.Context, class layout.Class, bufs vec, pieces []readPiece) error {
	f := fetchers.Get().(*fetcher)
	f.v, f.class, f.bufs = v, class, bufs
	watch := &v.cell.shards.watch
	watch.add(f)
	around, err := f.run(ctx, pieces, true)
	var w awaiting
	for try := 0; errs.KindOf(err) == errs.Unavailable && ctx.Err() == nil; try++ {
		again := try < fetchTries && (around || f.broke)
		if !again && !(f.maySoonGoOn() && w.more(ctx, v, err)) {
			break
		}
		f.reset()
		around, err = f.run(ctx, pieces, false)
	}
	w.over()
	watch.remove(f)
	if f.mayBeOutdated(err) {
		err = outdated{err}
	}
	f.reset()
	f.v, f.bufs, f.whole = nil, nil, nil
	fetchers.Put(f)
	return err
}

// outdated is the failure of a read whose map, looked up again, may not name what
// failed. Its shards are not where the metadata service says, which goes on saying so
// for a moment after a segment was freed: also a writer's own read may have been under
// way for so long. Or, for a reader that follows a volume, the bytes were of stripes
// that were not flushed, which their writer moved on, and the segment was sealed
// without them. A snapshot's map never changes.
type outdated struct{ error }

func (o outdated) Unwrap() error { return o.error }

// mayBeOutdated tells whether an error of the read is to be taken as outdated.
func (f *fetcher) mayBeOutdated(err error) bool {
	if f.v.frozen != nil {
		return false
	}
	kind := errs.KindOf(err)
	return f.nowhere && kind == errs.Unavailable || f.v.w == nil && kind == errs.Corrupt
}

// maySoonGoOn tells whether servers that come back help a read that failed: they do not
// bring back what was freed, and background work is begun anew by who ordered it.
func (f *fetcher) maySoonGoOn() bool {
	return f.away && !f.nowhere && f.class != layout.ClassBackground
}

// freed tells whether a read failed because its segment was freed, or may have been.
func freed(err error) bool {
	if err == nil { // before anything is allocated
		return false
	}
	return errs.KindOf(err) == errs.NotFound || errors.As(err, &outdated{})
}

func (f *fetcher) reset() {
	f.gone, f.failed, f.over, f.degraded, f.hedged, f.extra = nil, nil, false, false, false, 0
	f.broke, f.nowhere, f.away = false, false, false
	f.pieces = f.pieces[:0]
	clear(f.segments)
	f.segments = f.segments[:0]
	f.lateAt.Store(0)
	f.late.Store(false)
}

// run reads the pieces; around tells whether some shards were not to be asked.
func (f *fetcher) run(ctx context.Context, pieces []readPiece, avoid bool) (around bool, err error) {
	for _, p := range pieces {
		s, err := f.locate(ctx, p.Place.Segment)
		if err != nil {
			return false, err
		}
		piece := read.Piece{Segment: s.id, Volume: s.volume, Geometry: s.geometry, Offset: p.Place.Offset,
			Shape: p.Place.Shape, Index: layout.BlockCount(p.Place.Index), Count: p.Count, Into: int64(p.at)}
		if avoid {
			piece.Down = f.v.cell.shards.pace.down(s)
			around = around || piece.Down != 0
		}
		f.pieces = append(f.pieces, piece)
	}
	begun := f.op.Start(f.v.cell.session.name, f.pieces)
	if err := f.v.cell.shards.pace.inTime(ctx, largest(begun)); err != nil {
		f.op.Abort(err) // nothing was sent: there is nothing to do
		return false, err
	}
	f.act(ctx, begun)
	for !f.over {
		f.wait(ctx)
	}
	f.drain()
	if f.failed != nil && f.gone != nil {
		return around, f.gone
	}
	return around, f.failed
}

// largest gives the bytes of the largest request that is to be sent.
func largest(actions []read.Action) (bytes int) {
	for i := range actions {
		if actions[i].Kind == read.Send {
			bytes = max(bytes, actions[i].Request.Bytes())
		}
	}
	return bytes
}

// locate gives a segment's placement and keeps it for the read.
func (f *fetcher) locate(ctx context.Context, id layout.SegmentID) (*segment, error) {
	if s := f.segment(id); s != nil {
		return s, nil
	}
	s, err := f.v.cell.places.segment(ctx, id)
	if err == nil {
		f.segments = append(f.segments, s)
	}
	return s, err
}

func (f *fetcher) segment(id layout.SegmentID) *segment {
	for _, s := range f.segments {
		if s.id == id {
			return s
		}
	}
	return nil
}

// wait waits for the next event and deals with it.
func (f *fetcher) wait(ctx context.Context) {
	if end := ctx.Done(); end == nil {
		<-f.wake
	} else {
		select {
		case <-f.wake:
		case <-end:
			f.act(ctx, f.op.Abort(errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for the shards")))
			return
		}
	}
	for c := f.take(); c != nil && !f.over; c = f.take() {
		f.replied(ctx, c)
	}
	if !f.over && f.late.Swap(false) {
		f.tellLate(ctx)
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
	c.answered = true
	return c
}

// replied checks a reply and goes on with what follows from it.
func (f *fetcher) replied(ctx context.Context, c *shardCall) {
	if c.canceled {
		return
	}
	kind := errs.KindOf(c.Err)
	now := time.Now()
	switch pace := f.v.cell.shards.pace; {
	case kind == errs.OK:
		if c.Reply.Reading && f.class == layout.ClassBackground {
			f.v.cell.shards.noteReading(now)
		}
		if pace.got(c.to.server, c.req.Bytes(), now.Sub(c.sentAt), c.Reply.Queue, now) {
			f.probe(c)
		}
	case kind == errs.Overloaded && c.tries < overloadedTries:
		c.tries++
		pace.heard(c.to.server, now)
		f.again(ctx, c)
		return
	case c.Reply.Status == errs.Deadline:
		pace.heard(c.to.server, now)
	case kind != errs.Deadline && kind != errs.Canceled:
		pace.trust(c.to.server, now)
	}
	f.broke = f.broke || kind == errs.Unavailable && c.broke()
	f.away = f.away || kind == errs.Unavailable && c.Reply.Status == errs.OK // none came
	f.nowhere = f.nowhere || kind == errs.NotHere
	if kind == errs.StaleEpoch && f.v.w != nil {
		f.v.lose(errs.New(errs.StaleEpoch, "write "+f.v.name, "a newer writer holds the volume"))
	}
	if c.Err == nil && c.Reply.Generation != c.body.Shard.Generation {
		c.Err = errs.New(errs.StaleGeneration, "", "shard %v has generation %d, its placement says %d", c.body.Shard.ShardKey, c.Reply.Generation, c.body.Shard.Generation)
	}
	if kind == errs.Deadline && f.tooLate(ctx, c) {
		return
	}
	verdict := c.req.Check(c.ReplyMeta, c.Into, c.Err)
	f.act(ctx, f.op.Replied(c.id, verdict))
}

// tooLate deals with a call that ended with Deadline, and tells whether that is all.
// A server that says so at once spares the caller the wait: the read ends, unless
// others may be asked within the budget of hedges. Asking them always would multiply
// what an overload refuses. A connection that took too long is one of a server that
// is out of reach.
func (f *fetcher) tooLate(ctx context.Context, c *shardCall) (done bool) {
	switch pace := f.v.cell.shards.pace; {
	case c.Reply.Status != errs.Deadline || c.Request.Deadline == 0:
		c.Err = errs.As(c.Err, errs.Unavailable, "")
	case c.req.Headers || c.late: // others are asked already
	case pace.retry(c.to.server):
		before := f.extra
		f.act(ctx, f.op.Replied(c.id, c.req.Check(nil, nil, c.Err)))
		pace.spend(f.extra - before)
		return true
	default:
		f.act(ctx, f.op.Abort(c.Err))
		return true
	}
	return false
}

// tellLate tells of the calls that take too long, where others may be asked, and
// looks again later where the budget is used up.
func (f *fetcher) tellLate(ctx context.Context) {
	now := time.Now()
	shards := f.v.cell.shards
	n := len(f.calls)
	for id := 0; id < n && !f.over; id++ {
		c := f.calls[id]
		if c == nil || c.answered || c.canceled || c.late || now.Before(c.lateAt) {
			continue
		}
		granted, fresh, again := shards.pace.hedge(c.to.server, c.req.Bytes(), c.sentAt, now)
		if !granted {
			c.lateAt = now.Add(again)
			continue
		}
		if fresh {
			f.probe(c)
		}
		c.late = true
		if !f.hedged {
			f.hedged = true
			f.v.stats.hedged.Add(1)
		}
		before := f.extra
		f.act(ctx, f.op.Late(id))
		if !shards.pace.suspect(c.to.server) { // else what is asked is that server's share
			shards.pace.spend(f.extra - before)
		}
	}
	f.setLate()
}

// setLate tells the watch of the next call that may become late.
func (f *fetcher) setLate() {
	var next time.Time
	for _, c := range f.calls {
		if c != nil && !c.answered && !c.canceled && !c.late && (next.IsZero() || c.lateAt.Before(next)) {
			next = c.lateAt
		}
	}
	if next.IsZero() {
		f.lateAt.Store(0)
		return
	}
	f.lateAt.Store(f.v.cell.shards.watch.at(next))
}

// nudge wakes the reading goroutine.
func (f *fetcher) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// act does what the read's step machine says. Actions are valid until the next
// event, and Decode and Refresh bring one: these come last in a list or are
// collected first.
func (f *fetcher) act(ctx context.Context, actions []read.Action) {
	var later []read.Action
	sent := false
	for _, a := range actions {
		switch a.Kind {
		case read.Send:
			f.send(ctx, a.Request)
			sent = true
		case read.Cancel:
			f.cancel(a.Request.ID)
		case read.Report:
			f.report(&a)
		case read.Decode, read.Refresh:
			later = append(later, a)
		case read.Done:
			f.over = true
		case read.Fail:
			f.over, f.failed = true, a.Err
		}
	}
	if sent {
		f.setLate()
	}
	for _, a := range later {
		if f.over {
			return
		}
		if a.Kind == read.Decode {
			f.act(ctx, f.op.Decoded(a.Group, f.decode(a.Group)))
		} else {
			f.act(ctx, f.op.Refreshed(a.Segment, f.relocate(ctx, a.Segment)))
		}
	}
}

// report tells of a bad shard, but not of one whose answer nobody waited for.
func (f *fetcher) report(a *read.Action) {
	switch a.Reason {
	case errs.Deadline, errs.Canceled, errs.Overloaded, errs.Closed:
		return
	}
	if s := f.segment(a.Segment); s != nil {
		f.v.cell.reports.add(f.v.cell, s, a.Shard, a.Reason, a.Offset)
	}
}

// relocate asks where a segment lies now.
func (f *fetcher) relocate(ctx context.Context, id layout.SegmentID) error {
	now, err := f.v.cell.places.refresh(ctx, id)
	if errs.KindOf(err) == errs.NotFound {
		f.gone = err
	}
	for i, s := range f.segments {
		if s.id == id && err == nil {
			f.segments[i] = now
		}
	}
	return err
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
	if f.whole == nil {
		f.whole = make([]byte, f.bufs.size())
	}
	for _, s := range g.Loans() {
		f.bufs.readAt(f.whole[s.Offset:][:s.Length], int(s.Offset))
	}
	err = g.Decode(coder, f.whole, &bytes)
	for _, s := range g.Spans() {
		f.bufs.copyAt(f.whole[s.Offset:][:s.Length], int(s.Offset))
		f.v.stats.copiedBytes.Add(uint64(s.Length))
	}
	return err
}

// drain waits until no call is under way: then no buffer is in use any more.
// Whoever submitted a call holds its mu until it is done with it.
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
			c.mu.Lock()
			c.f, c.req, c.own, c.conn, c.giveUp = nil, nil, nil, nil, nil
			c.mu.Unlock()
			clear(c.Into)
			shardCalls.Put(c)
		}
	}
	clear(f.calls)
	f.calls = f.calls[:0]
}
