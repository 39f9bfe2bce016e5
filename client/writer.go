package client

import (
	"context"
	"sync/atomic"
	"time"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// writer drives the write core of one volume. Story of a write: WriteAt takes
// the volume's mutex, puts the payload into the overlay and into the core, and
// collects the actions that come of it. What only touches memory (map, payloads,
// completions) is done there and then, under the mutex; what needs a socket or
// the processor becomes a job that runs after it: on the caller's goroutine when
// a caller brought the event, on a worker when a reply did (a connection's
// goroutine must not encode). Replies come back as events under the mutex.
type writer struct {
	v     *Volume
	lease lease
	began time.Time

	// Guarded by v.mu.
	core     *write.Core
	maps     *write.MapWriter
	payloads map[write.WriteID]*payload
	flushes  map[write.FlushID]*Completion
	free     []*payload // to be used again; as many as were ever there at once
	async    int        // writes of WriteAsync that are not done
	stripes  stripeQueue
	lastID   uint64
	ranges   [1]stripe.Range // scratch of admit
	full     bool            // the core said Wait
	room     chan struct{}   // closed at Resume or the end; nil while nobody waits
	err      error           // why the writer ended
	refused  error           // why the last request for segments was refused; nil when it was not
	released chan struct{}   // closed at Released or Fail
	lastSeq  layout.Seq      // of Released
	actions  []write.Action

	mapper *mapper
	clean  *cleaner
	jobs   jobQueue
	calls  crew // to the metadata service
	debts  debts
	timer  *timer
	life   context.Context // ends with the writer: calls to the metadata service stop
	die    context.CancelFunc

	acked, flushed atomic.Uint64 // for frames; written with v.mu held
	noMoves        atomic.Int64  // until then, by now(), the cell's budget for moves has nothing
}

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
}

func (w *writer) cores() [2]core { return [2]core{w.core, w.maps} }

func newWriter(v *Volume, l lease, lastSeq layout.Seq) *writer {
	cfg := write.Config{Cell: v.cell.session.name, Volume: v.id, Epoch: l.epoch, LastSeq: lastSeq,
		Geometry: v.geometry, MemoryCap: v.cell.cfg.MemoryCap}
	w := &writer{
		v: v, lease: l, began: time.Now(), core: write.New(cfg),
		payloads: map[write.WriteID]*payload{}, flushes: map[write.FlushID]*Completion{}, released: make(chan struct{}),
	}
	cfg.LastSeq, cfg.MemoryCap = 0, mapMemory
	w.maps = write.NewMap(cfg)
	w.life, w.die = context.WithCancel(context.Background())
	w.stripes.places = map[placeKey]*write.Stripe{}
	w.jobs.start(w.perform)
	w.timer = startTimer(w.tick)
	return w
}

func (w *writer) tick() {
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
func (w *writer) release(ctx context.Context) error {
	w.input(func(now time.Duration) { w.core.Release(now) })
	select {
	case <-w.released:
	case <-ctx.Done():
		return errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "seal the open segments")
	}
	w.v.mu.Lock()
	err, last := w.err, w.lastSeq
	w.v.mu.Unlock()
	if errs.KindOf(err) != errs.Closed {
		return err
	}
	return errs.Wrap(w.lease.release(ctx, last), "give the lease back")
}

// stop ends the goroutines; the core has ended and answers everything at once.
func (w *writer) stop() {
	w.die()
	w.timer.stop()
	w.jobs.stop()
	w.calls.close()
}

// ending is why the writer ended, nil while it works. Called with v.mu held.
func (w *writer) ending() error {
	if w.err == nil || errs.KindOf(w.err) == errs.Closed {
		return nil
	}
	return w.err
}

func (w *writer) now() time.Duration { return time.Since(w.began) }

// alive tells whether the writer has not ended.
func (w *writer) alive() bool {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	return w.err == nil
}

// input gives the core one event, does the small jobs that come of it, and hands
// the others to the workers. For events that a reply or a timer brings.
func (w *writer) input(event func(now time.Duration)) {
	var room [usualJobs]job
	w.v.mu.Lock()
	event(w.now())
	jobs := w.take(room[:0])
	w.mapper.changed.Broadcast()
	w.v.mu.Unlock()
	w.dispatch(jobs)
}

// dispatch does small jobs at once and hands the others to the workers.
func (w *writer) dispatch(jobs []job) {
	for i := range jobs {
		if jobs[i].small() {
			w.perform(&jobs[i])
		} else {
			w.jobs.push(jobs[i])
		}
	}
}

// performAll does jobs on the caller's goroutine.
func (w *writer) performAll(jobs []job) {
	for i := range jobs {
		w.perform(&jobs[i])
	}
}

// submit takes a write in. It blocks while the memory cap is reached, or until
// ctx ends. The buffer, nil for a range without data, belongs to the writer from
// now on, unless there is an error.
func (w *writer) submit(ctx context.Context, r stripe.Range, buf *buffer, done *Completion) error {
	var room [usualJobs]job
	w.v.mu.Lock()
	for {
		if w.err != nil {
			defer w.v.mu.Unlock()
			return w.err
		}
		if !w.full {
			err := w.admit(r, buf, done)
			if err == nil {
				break
			}
			if errs.KindOf(err) != errs.Overloaded {
				defer w.v.mu.Unlock()
				return err
			}
			w.full = true
		}
		if err := w.awaitRoom(ctx); err != nil {
			defer w.v.mu.Unlock()
			return err
		}
	}
	jobs := w.take(room[:0])
	w.v.mu.Unlock()
	w.performAll(jobs)
	return nil
}

// admit gives one write to the core. Called with v.mu held.
func (w *writer) admit(r stripe.Range, buf *buffer, done *Completion) error {
	w.lastID++
	id := write.WriteID(w.lastID)
	w.ranges[0] = r
	if err := w.core.Submit(w.now(), write.Write{ID: id, Ranges: w.ranges[:]}); err != nil {
		return err
	}
	p := w.newPayload()
	*p = payload{id: id, r: r, uncut: r.Count, over: done}
	if buf != nil {
		p.buf, p.left = buf, layout.BlockCount(r.Count)
		p.data = buf.whole[:p.left.Bytes()]
	}
	w.payloads[id] = p
	if !done.single {
		w.async++
	}
	w.v.overlay.push(p)
	return nil
}

// await waits for a write that one caller waits for. When ctx ends first the
// write goes on.
func (w *writer) await(ctx context.Context, c *Completion) error {
	over, err := c.await(ctx)
	if !over {
		w.leave(c)
	}
	return err
}

// leave notes that nobody waits for a write any more that is still under way: a
// flush covers it from now on, as it does WriteAsync's.
func (w *writer) leave(c *Completion) {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	if !c.finished.Load() {
		c.left = true
		w.async++
	}
}

func (w *writer) newPayload() *payload {
	n := len(w.free)
	if n == 0 {
		return new(payload)
	}
	p := w.free[n-1]
	w.free = w.free[:n-1]
	return p
}

// awaitRoom waits for room under the memory cap. Called with v.mu held, which it
// gives up meanwhile.
func (w *writer) awaitRoom(ctx context.Context) error {
	if w.room == nil {
		w.room = make(chan struct{})
	}
	room := w.room
	w.v.mu.Unlock()
	defer w.v.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), "wait for memory: %d bytes are not flushed yet", w.v.cell.cfg.MemoryCap)
	}
}

// wakeAll lets those in await look again. Called with v.mu held.
func (w *writer) wakeAll() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// flush asks that all that was acknowledged becomes durable; with all, and while
// WriteAsync's writes are under way, all that was submitted.
func (w *writer) flush(c *Completion, all bool) *Completion {
	var room [usualJobs]job
	w.v.mu.Lock()
	if w.err != nil {
		defer w.v.mu.Unlock()
		c.finish(w.err)
		return c
	}
	w.lastID++
	id := write.FlushID(w.lastID)
	w.flushes[id] = c
	if all || w.async > 0 {
		w.core.Flush(w.now(), id)
	} else {
		w.core.FlushAcked(w.now(), id)
	}
	jobs := w.take(room[:0])
	w.v.mu.Unlock()
	w.performAll(jobs)
	return c
}

// take collects the cores' actions: it deals with those that touch memory alone
// and appends the others to jobs. Called with v.mu held.
func (w *writer) take(jobs []job) []job {
	w.actions = w.core.Take(w.actions[:0])
	for i := range w.actions {
		if j, ok := w.act(&w.actions[i]); ok {
			jobs = append(jobs, j)
		}
		w.actions[i] = write.Action{}
	}
	jobs = append(jobs, w.takeMaps()...)
	w.acked.Store(uint64(w.core.Acked()))
	w.flushed.Store(uint64(w.core.FlushedSeq()))
	for _, c := range w.cores() {
		if next, ok := c.NextTick(); ok {
			w.timer.wakeAt(w.began.Add(next))
		}
	}
	return jobs
}

// takeMaps is take for the map writer alone. Called with v.mu held.
func (w *writer) takeMaps() (jobs []job) {
	for _, a := range w.maps.Take(nil) {
		if j, ok := w.mapper.act(&a); ok {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// act deals with one action under the mutex; ok says that a job remains.
func (w *writer) act(a *write.Action) (j job, ok bool) {
	switch a.Kind {
	case write.Cut:
		w.cut(a.Stripe)
		return w.stripeJob(a), true
	case write.Move:
		w.moved(a.Stripe)
		return w.stripeJob(a), true
	case write.Retry:
		return w.stripeJob(a), true
	case write.SendSync, write.Allocate, write.SealSegment, write.RequestMove:
		return job{kind: a.Kind, core: w.core, sync: a.Sync, allocation: a.Allocation, seal: a.Seal, server: a.Server}, true
	case write.Flushed:
		w.flushedUpTo(a.Seq)
	case write.WriteDone:
		w.writeDone(a.Write, a.Err)
	case write.FlushDone:
		w.flushes[a.Flush].finish(a.Err)
		delete(w.flushes, a.Flush)
	case write.Wait:
		w.full = true
	case write.Resume:
		w.full = false
		w.wakeAll()
	case write.Fail:
		w.end(a.Err)
	case write.Released:
		w.lastSeq = a.Seq
		w.end(errs.New(errs.Closed, "write "+w.v.name, "the volume is closed"))
	}
	return job{}, false
}

// cut shows a new stripe in the map; its payload now lies in the stripe.
func (w *writer) cut(s *write.Stripe) {
	w.stripes.push(s)
	must(w.v.tree.Apply(s.Header))
	w.v.stats.appendedBytes.Add(s.Header.Shape.DataBytes())
	if s.Header.Flags&stripe.Relocation != 0 {
		w.relocatedCut(s)
	} else {
		w.v.overlay.applied(s)
	}
	w.mapper.wake()
}

func (w *writer) moved(s *write.Stripe) {
	old := w.stripes.replace(s)
	must(w.v.tree.Moved(old.Header, s.Header))
	w.v.stats.moves.Add(1)
}

// stripeJob is the job to send a stripe: its payload, piece by piece, which it
// holds until the stripe's last participant has answered.
func (w *writer) stripeJob(a *write.Action) job {
	f := w.newFlight(w.core, a.Kind, a.Stripe, a.Shards)
	for _, piece := range a.Stripe.Pieces {
		p := w.payloads[piece.Write]
		f.parts = append(f.parts, p.data[piece.First*layout.BlockSize:][:piece.Blocks*layout.BlockSize])
		f.hold = append(f.hold, p.buf.retain())
		if p.sums != nil {
			f.sums = append(f.sums, p.sums[piece.First:][:piece.Blocks]...)
		}
	}
	return job{kind: a.Kind, flight: f}
}

// flushedUpTo lets the payloads of flushed stripes go: from now on their blocks
// are read from the shards.
func (w *writer) flushedUpTo(seq layout.Seq) {
	for s := w.stripes.popUpTo(seq); s != nil; s = w.stripes.popUpTo(seq) {
		for _, piece := range s.Pieces {
			p := w.payloads[piece.Write]
			p.left -= piece.Blocks
			w.dropIfDone(p)
		}
		w.core.Free(s)
	}
}

func (w *writer) writeDone(id write.WriteID, err error) {
	p := w.payloads[id]
	if !p.over.single || p.over.left {
		w.async--
	}
	p.over.finish(errs.Wrap(err, "write %s", w.v.name))
	p.over, p.done = nil, true
	if err != nil {
		p.fail()
		w.v.overlay.drop(p)
	}
	w.dropIfDone(p)
}

func (w *writer) dropIfDone(p *payload) {
	if p.done && p.left == 0 && w.payloads[p.id] != nil {
		delete(w.payloads, p.id)
		if p.buf != nil {
			p.buf.release()
		}
		*p = payload{}
		w.free = append(w.free, p)
	}
}

// end stops the writer for good: waiting callers get err.
func (w *writer) end(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	close(w.released)
	w.wakeAll()
	w.mapper.changed.Broadcast()
}

// must stops the process at a broken invariant: carrying on would spread it.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
