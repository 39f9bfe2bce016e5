package simclient

import (
	"time"

	"strake/client/internal/clean"
	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// writer drives the write core of one volume.
type writer struct {
	v       *Volume
	c       *Client
	epoch   layout.Epoch
	core    *write.Core
	maps    *write.MapWriter
	mapper  *mapper
	clean   *cleaner
	stripes stripeQueue

	payloads map[write.WriteID]*payload
	flushes  map[write.FlushID]func(error)
	lastID   uint64
	taking   bool
	full     bool // the core said Wait
	room     cond
	err      error // why the writer ended
	released bool  // Released came, or the end
	ended    cond
	lastSeq  layout.Seq // of Released
	wakeAt   time.Duration
	stopped  bool // the cores get no more events
}

// leastWait is the shortest timer.
const leastWait = 20 * time.Microsecond

// core is what the write core and the map writer have in common.
type core interface {
	Granted(now time.Duration, id write.RequestID, segments []write.Segment, err error)
	Appended(now time.Duration, r write.Reply, err error)
	Synced(now time.Duration, id write.SyncID, err error)
	Sealed(now time.Duration, segment layout.SegmentID, err error)
	MoveGranted(now time.Duration, server layout.ServerID, granted bool, retryAfter time.Duration)
	ServerDown(now time.Duration, server layout.ServerID)
	LeaseLost(now time.Duration, err error)
	Tick(now time.Duration)
	NextTick() (at time.Duration, ok bool)
	Take(dst []write.Action) []write.Action
	Check() error
}

func (w *writer) cores() [2]core { return [2]core{w.core, w.maps} }

func newWriter(v *Volume, g *Granted, lastSeq layout.Seq) *writer {
	epoch := g.Epoch
	cfg := write.Config{Cell: v.c.session.Cell, Volume: v.ID, Epoch: epoch, LastSeq: lastSeq, Geometry: v.geometry, MemoryCap: v.c.opts.MemoryCap}
	w := &writer{v: v, c: v.c, epoch: epoch, core: write.New(cfg), wakeAt: forever,
		payloads: map[write.WriteID]*payload{}, flushes: map[write.FlushID]func(error){}}
	cfg.LastSeq = 0
	w.maps = write.NewMap(cfg)
	w.stripes.places = map[placeKey]*write.Stripe{}
	w.mapper = &mapper{v: v, w: w, number: g.Open.Root.Number, pages: map[write.WriteID]page{},
		retiring: clean.NewRetiring(sealedData(g.Open.Segments)...), branch: g.Open.Volume.Branch}
	w.clean = &cleaner{v: v, w: w, catalog: catalog{}, geometry: v.geometry}
	return w
}

func (w *writer) now() time.Duration { return w.c.world.Now() }

// input gives the cores one event and does what comes of it.
func (w *writer) input(event func(now time.Duration)) {
	if w.stopped || w.c.dead {
		return
	}
	event(w.now())
	w.take()
	w.mapper.changed.broadcast()
}

func (w *writer) tick() {
	w.wakeAt = forever
	w.input(func(now time.Duration) {
		for _, c := range w.cores() {
			c.Tick(now)
		}
	})
}

func (w *writer) serverDown(server layout.ServerID) {
	w.input(func(now time.Duration) {
		for _, c := range w.cores() {
			c.ServerDown(now, server)
		}
	})
}

func (w *writer) leaseLost(err error) {
	w.input(func(now time.Duration) {
		for _, c := range w.cores() {
			c.LeaseLost(now, err)
		}
	})
}

// release flushes, seals all segments, and gives the lease back.
func (w *writer) release(f *Fiber) error {
	w.input(func(now time.Duration) { w.core.Release(now) })
	for !w.released {
		if !w.ended.wait(f) {
			return errKilled
		}
	}
	if errs.KindOf(w.err) != errs.Closed {
		return w.err
	}
	_, err := metaCall[*Kept](w.c, f, forever, attemptTimeout, &ReleaseLease{Command: w.c.command(), Session: w.c.session.ID,
		Volume: w.v.ID, Epoch: w.epoch, LastSeq: w.lastSeq})
	return errs.Wrap(err, "give the lease back")
}

// submit takes a write in, or refuses it.
func (w *writer) submit(ranges []stripe.Range, data []byte, durable bool, done func(error)) error {
	if w.err != nil {
		return w.err
	}
	w.lastID++
	p := &payload{id: write.WriteID(w.lastID), ranges: ranges, data: data, left: layout.Blocks(int64(len(data))), answer: done}
	err := w.core.Submit(w.now(), write.Write{ID: p.id, Ranges: ranges, Durable: durable})
	if err != nil {
		w.full = w.full || errs.KindOf(err) == errs.Overloaded
		return err
	}
	w.payloads[p.id] = p
	w.v.overlay.push(p)
	w.take()
	return nil
}

// flush asks that all that was submitted becomes durable.
func (w *writer) flush(done func(error)) { w.flushWith(w.core.Flush, done) }

func (w *writer) flushWith(ask func(time.Duration, write.FlushID), done func(error)) {
	if w.err != nil {
		done(w.err)
		return
	}
	w.lastID++
	id := write.FlushID(w.lastID)
	w.flushes[id] = done
	ask(w.now(), id)
	w.take()
}

// take does what the cores ask for, until they ask for nothing more. Who is answered
// meanwhile may go on at once and come here again: what that asks for has its turn
// after what was asked for before.
func (w *writer) take() {
	if w.taking {
		return
	}
	w.taking = true
	defer func() { w.taking = false }()
	for more := true; more; {
		more = false
		for _, a := range w.core.Take(nil) {
			w.act(&a)
			more = true
		}
		for _, a := range w.maps.Take(nil) {
			w.mapper.act(&a)
			more = true
		}
	}
	for _, c := range w.cores() {
		must(c.Check())
		if next, ok := c.NextTick(); ok && next < w.wakeAt {
			w.wakeAt = next
			w.c.after(max(next-w.now(), leastWait), func() {
				if w.wakeAt <= w.now() && !w.stopped {
					w.tick()
				}
			})
		}
	}
}

// act deals with one action of the write core.
func (w *writer) act(a *write.Action) {
	switch a.Kind {
	case write.Cut:
		w.cut(a.Stripe)
		w.send(w.core, a.Stripe, a.Shards, w.gather(a.Stripe), true)
	case write.Move:
		w.moved(a.Stripe)
		w.send(w.core, a.Stripe, a.Shards, w.gather(a.Stripe), true)
	case write.Retry:
		w.send(w.core, a.Stripe, a.Shards, w.gather(a.Stripe), false)
	case write.SendSync, write.Allocate, write.SealSegment, write.RequestMove:
		w.perform(w.core, a)
	case write.Acked:
		w.c.watch.Acked(w.v.ID, w.epoch, a.Seq)
	case write.Flushed:
		w.c.watch.Flushed(w.v.ID, w.epoch, a.Seq)
		w.flushedUpTo(a.Seq)
	case write.WriteDone:
		w.writeDone(a.Write, a.Err)
	case write.FlushDone:
		done := w.flushes[a.Flush]
		delete(w.flushes, a.Flush)
		done(a.Err)
	case write.Wait:
		w.full = true
	case write.Resume:
		w.full = false
		w.room.broadcast()
	case write.Fail:
		w.end(a.Err)
	case write.Released:
		w.lastSeq = a.Seq
		w.end(errs.New(errs.Closed, "", "volume %d is closed", w.v.ID))
	}
}

// cut shows a new stripe in the map; its payload now lies in the stripe.
func (w *writer) cut(s *write.Stripe) {
	w.c.watch.Cut(w.v.ID, w.epoch, s.Header)
	w.stripes.push(s)
	must(w.v.tree.Apply(s.Header))
	if s.Header.Flags&stripe.Relocation == 0 { // what a relocation brings is what the map says already
		w.v.overlay.applied(s.Header.Ranges)
	}
}

func (w *writer) moved(s *write.Stripe) {
	old := w.stripes.replace(s)
	must(w.v.tree.Moved(old.Header, s.Header))
	w.c.watch.Moved(w.v.ID, w.epoch, s.Seq(), s.Header.Segment)
}

// gather lists a stripe's payload, piece by piece.
func (w *writer) gather(s *write.Stripe) [][]byte {
	parts := make([][]byte, len(s.Pieces))
	for i, p := range s.Pieces {
		parts[i] = w.payloads[p.Write].data[p.First*layout.BlockSize:][:p.Blocks*layout.BlockSize]
	}
	return parts
}

// flushedUpTo lets the payloads of flushed stripes go.
func (w *writer) flushedUpTo(seq layout.Seq) {
	for s := w.stripes.popUpTo(seq); s != nil; s = w.stripes.popUpTo(seq) {
		for _, piece := range s.Pieces {
			p := w.payloads[piece.Write]
			p.left -= piece.Blocks
			w.dropIfDone(p)
		}
	}
}

func (w *writer) writeDone(id write.WriteID, err error) {
	p := w.payloads[id]
	p.done = true
	if err != nil {
		p.left = 0
		w.v.overlay.drop(p)
	}
	w.dropIfDone(p)
	p.answer(err)
}

func (w *writer) dropIfDone(p *payload) {
	if p.done && p.left == 0 {
		delete(w.payloads, p.id)
	}
}

// end stops the writer for good.
func (w *writer) end(err error) {
	if w.err != nil {
		return
	}
	w.err, w.released = err, true
	w.c.watch.Ended(w.v.ID, w.epoch, err)
	w.room.broadcast()
	w.ended.broadcast()
	w.mapper.changed.broadcast()
}

// must stops at a broken invariant: carrying on would spread it.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
