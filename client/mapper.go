package client

import (
	"context"
	"sync"
	"time"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/pb"
	"strake/proto/stripe"
)

const (
	// checkpointStep is about how many bytes of pages are made under the mutex at once.
	checkpointStep = 1 << 20
	// stepRoom is the room that must be there before a step: a step's pages, and
	// what padding and the last page add.
	stepRoom = layout.BlockCount(3 * checkpointStep / layout.BlockSize)
	// mapMemory bounds the map writer's pages that are not flushed: at half of it
	// it syncs by itself. Past mapWindow no more pages are made.
	mapMemory = 64 << 20
	mapWindow = 3 * mapMemory / 4
	// checkpointTries bounds the attempts of one map checkpoint, and
	// checkpointPause is the wait after the first; it doubles.
	checkpointTries = 5
	checkpointPause = 50 * time.Millisecond
	// mapperPause is the wait after a map checkpoint that failed; it doubles up to
	// mapperLongest.
	mapperPause   = time.Second
	mapperLongest = 30 * time.Second
	// closeHeaders is how many headers make a map checkpoint worth while on Close:
	// fewer are replayed in a moment.
	closeHeaders = 512
)

// mapper writes a volume's map checkpoints. One goroutine waits until one is
// due; Close writes a last one. Its state is guarded by the volume's mutex.
type mapper struct {
	v *Volume
	w *writer

	one  chan struct{} // one slot: taken by who makes a checkpoint
	kick chan struct{}
	done sync.WaitGroup

	// Guarded by v.mu.
	changed *sync.Cond // on v.mu: the map writer did something
	number  uint64     // of the newest root
	cuts    []*write.Stripe
	sent    []*write.Stripe // not flushed, ascending by seq
	unsent  int             // bytes of pages that are not flushed
	jobs    []job           // other actions that came while pages were placed
	pages   map[write.WriteID]extent.PageWrite
	next    write.WriteID // the number of the next page to be placed
	lists   []stripe.Seal // of Checkpointed
	ready   bool          // Checkpointed came
	aborted error         // Aborted came
	over    error         // the map writer has ended or released

	retiring *clean.Retiring // of who holds one; guarded by the volume's mutex
	listed   bool            // what the volume had when it was opened is in retiring; of who holds one
	counts   counts          // the same
	flat     bool            // the map names nothing of the volume's ancestors any more
}

func newMapper(v *Volume, w *writer, r *pb.OpenVolumeReply) *mapper {
	m := &mapper{v: v, w: w, one: make(chan struct{}, 1), kick: make(chan struct{}, 1), number: r.GetRoot().GetNumber(),
		pages: map[write.WriteID]extent.PageWrite{}, retiring: clean.NewRetiring(sealedData(r.Segments)...)}
	m.counts.branch = r.GetVolume().GetOrigin() != 0
	m.changed = sync.NewCond(&v.mu)
	m.done.Go(m.run)
	return m
}

// run makes a map checkpoint whenever one is due.
func (m *mapper) run() {
	wait := mapperPause
	for {
		select {
		case <-m.w.life.Done():
			return
		case <-m.kick:
		}
		if err := m.checkpoint(m.w.life); err == nil {
			wait = mapperPause
		} else if m.w.life.Err() == nil {
			m.v.cell.cfg.Logger.Warn("map checkpoint failed", "volume", m.v.id, "err", err)
			pause(m.w.life, wait)
			wait = min(2*wait, mapperLongest)
		}
	}
}

// wake starts a map checkpoint when one is due. Called with v.mu held.
func (m *mapper) wake() {
	if d := m.v.tree.Dirty(); d.Due() || d.Headers >= m.v.cell.cfg.Tuning.MapHeaders {
		select {
		case m.kick <- struct{}{}:
		default:
		}
	}
}

// act deals with one action of the map writer. Called with v.mu held.
func (m *mapper) act(a *write.Action) (j job, ok bool) {
	defer m.changed.Broadcast()
	switch a.Kind {
	case write.Cut:
		m.cuts = append(m.cuts, a.Stripe)
	case write.Retry:
		return m.stripeJob(a.Kind, a.Stripe, a.Shards), true
	case write.SendSync, write.Allocate, write.SealSegment, write.RequestMove:
		return job{kind: a.Kind, core: m.w.maps, sync: a.Sync, allocation: a.Allocation, seal: a.Seal, server: a.Server}, true
	case write.Flushed:
		m.flushed(a.Seq)
	case write.Checkpointed:
		m.ready, m.lists = true, a.Lists
	case write.Aborted:
		m.aborted = a.Err
	case write.Fail:
		m.over = a.Err
	case write.Released:
		m.over = errs.New(errs.Closed, "", "the map writer is closed")
	}
	return job{}, false
}

// flushed lets the pages of flushed stripes go. Called with v.mu held.
func (m *mapper) flushed(seq layout.Seq) {
	for len(m.sent) > 0 && m.sent[0].Seq() <= seq {
		for _, p := range m.sent[0].Pieces {
			m.unsent -= len(m.pages[p.Write].Data)
			delete(m.pages, p.Write)
		}
		m.sent = m.sent[1:]
	}
}

// enter waits until nobody else makes a checkpoint.
func (m *mapper) enter(ctx context.Context) error {
	select {
	case m.one <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), "wait for a map checkpoint under way")
	}
}

func (m *mapper) leave() { <-m.one }

// checkpoint writes the map as it is now, and has its root recorded. When a
// server fails meanwhile, it begins again.
func (m *mapper) checkpoint(ctx context.Context) error { return m.checkpointAbove(ctx, 0) }

// checkpointAbove is checkpoint if at least so many headers came since the last one.
func (m *mapper) checkpointAbove(ctx context.Context, headers int64) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	m.v.mu.Lock()
	few := m.v.tree.Dirty().Headers < headers
	m.v.mu.Unlock()
	if few {
		return nil
	}
	wait := checkpointPause
	for try := 1; ; try++ {
		err := m.try(ctx)
		switch kind := errs.KindOf(err); {
		case kind == errs.StaleEpoch || kind == errs.LeaseLost:
			m.v.lose(err)
			return errs.Wrap(err, "write the extent map")
		case err == nil || try == checkpointTries || ctx.Err() != nil || m.dead():
			return errs.Wrap(err, "write the extent map")
		}
		pause(ctx, wait)
		wait *= 2
	}
}

func (m *mapper) dead() bool {
	m.v.mu.Lock()
	defer m.v.mu.Unlock()
	return m.over != nil || m.w.err != nil
}

func (m *mapper) try(ctx context.Context) error {
	c, err := m.freeze(ctx)
	if err != nil {
		return err
	}
	if !planted.Is(planted.RootBeforeFlush) {
		err = m.w.flush(newCompletion(), true).Wait(ctx)
	}
	if err == nil {
		err = m.writePages(ctx, c)
	}
	if err == nil {
		// Not before: what overwrote blocks whose pages were not loaded had not been
		// taken off yet.
		err = m.counts.take(ctx, m.v)
	}
	if err == nil {
		err = m.record(ctx, c)
	}
	if err != nil {
		_ = m.event(func(now time.Duration) error { m.w.maps.Abort(now, err); return nil })
	} else {
		m.v.stats.roots.Add(1)
	}
	m.v.mu.Lock()
	defer m.v.mu.Unlock()
	if err != nil {
		m.v.tree.Aborted(c)
	}
	m.reset()
	return err
}

// reset forgets a checkpoint's state. Called with v.mu held.
func (m *mapper) reset() {
	m.cuts, m.sent, m.unsent, m.lists, m.ready, m.aborted, m.next = nil, nil, 0, nil, false, nil, 0
	clear(m.pages)
}

// writePages makes the changed pages, step by step, and waits until all of them
// are durable.
func (m *mapper) writePages(ctx context.Context, c *extent.Checkpoint) error {
	if err := m.event(func(now time.Duration) error { return m.w.maps.Begin(now) }); err != nil {
		return err
	}
	for !c.Done() {
		if err := m.await(ctx, m.room); err != nil {
			return err
		}
		need, err := m.step(c)
		if err != nil {
			return err
		}
		if err := m.v.loadPages(ctx, need); err != nil {
			return err
		}
	}
	_ = m.event(func(now time.Duration) error { m.w.maps.Finish(now); return nil })
	return m.await(ctx, func() bool { return m.ready })
}

// room tells whether a step's pages can be placed at once; if not it asks for a
// segment. Called with v.mu held.
func (m *mapper) room() bool { return m.unsent < mapWindow && m.w.maps.Ready(m.w.now(), stepRoom) }

// step makes some pages, sends them, and gives the pages that must be loaded first.
func (m *mapper) step(c *extent.Checkpoint) ([]extent.PageRef, error) {
	v := m.v
	v.mu.Lock()
	pages, need, err := c.Next(checkpointStep, m.place)
	for _, p := range pages {
		m.fill(p)
		m.unsent += len(p.Data)
	}
	jobs := m.jobs
	if err == nil { // else some stripe may lack its pages, and all is aborted
		for _, s := range m.cuts {
			jobs = append(jobs, m.stripeJob(write.Cut, s, s.Header.Participants()))
		}
		m.sent = append(m.sent, m.cuts...)
	}
	m.cuts, m.jobs = nil, nil
	v.evict() // the new pages are in the map's cache, as are those that were loaded for them
	jobs = m.w.take(jobs)
	v.mu.Unlock()
	m.w.performAll(jobs)
	return need, err
}

// place gives pages their spots: the map writer cuts stripes for them at once,
// since there is room. Called with v.mu held, from within Next.
func (m *mapper) place(blocks []uint32, refs []extent.PageRef) {
	counts := make([]layout.BlockCount, len(blocks))
	for i, n := range blocks {
		counts[i] = layout.BlockCount(n)
	}
	first, known := m.next, len(m.cuts)
	if m.w.maps.Place(m.w.now(), counts) != nil {
		return // the refs stay empty: Next fails
	}
	m.next += write.WriteID(len(blocks))
	m.jobs = append(m.jobs, m.w.takeMaps()...)
	for _, s := range m.cuts[known:] {
		for _, p := range s.Pieces {
			ref := &refs[p.Write-first]
			ref.Segment, ref.Offset, ref.Shape, ref.Index = s.Header.Segment, s.Header.Offset, s.Header.Shape, uint32(p.At)
			m.pages[p.Write] = extent.PageWrite{Ref: *ref}
		}
	}
}

// fill finds the number of a page that was placed and keeps its bytes.
func (m *mapper) fill(p extent.PageWrite) {
	for _, s := range m.cuts {
		if s.Header.Segment != p.Ref.Segment || s.Header.Offset != p.Ref.Offset {
			continue
		}
		for _, piece := range s.Pieces {
			if uint32(piece.At) == p.Ref.Index {
				m.pages[piece.Write] = p
			}
		}
	}
}

// stripeJob is the job to send a map stripe: its pages, and zeros between them.
func (m *mapper) stripeJob(kind write.Kind, s *write.Stripe, shards layout.Mask) job {
	f := m.w.newFlight(m.w.maps, kind, s, shards)
	at := layout.BlockCount(0)
	for _, p := range s.Pieces {
		if p.At > at {
			f.parts = append(f.parts, make([]byte, (p.At-at).Bytes()))
		}
		f.parts = append(f.parts, m.pages[p.Write].Data)
		at = p.At + p.Blocks
	}
	return job{kind: kind, flight: f}
}

// record has the root recorded. Its outcome must be known, so the call is
// repeated, under one command id, until it is.
func (m *mapper) record(ctx context.Context, c *extent.Checkpoint) error {
	m.v.mu.Lock()
	request := &pb.RecordRootRequest{Command: newCommand(), Volume: uint64(m.v.id), Epoch: uint64(m.w.lease.epoch),
		Root: &pb.Root{Number: m.number + 1, Covers: uint64(c.Covers()), Page: c.Root(),
			LiveBlocks: m.counts.live, OwnBlocks: m.counts.own, MapBlocks: m.counts.pages}, Flat: m.flat}
	for _, s := range m.lists {
		request.MapLists = append(request.MapLists, sealToPB(s))
	}
	request.Retired = ids(m.retiring.Wish(c.Retired()))
	request.RetiredMap = ids(c.RetiredMap()[:min(len(c.RetiredMap()), clean.MaxRetired)])
	m.v.mu.Unlock()
	var reply *pb.RecordRootReply
	err := m.v.cell.meta.Do(ctx, func(ctx context.Context, meta pb.MetaClient) (err error) {
		reply, err = meta.RecordRoot(ctx, request)
		return err
	})
	m.v.mu.Lock()
	if err == nil {
		m.number++
		m.v.tree.Committed(c)
		gone := segmentIDs(reply.Retired)
		m.v.tree.Forget(gone...)
		m.retiring.Told(gone)
	}
	m.w.maps.Recorded(m.w.now(), err)
	jobs := m.w.take(nil)
	m.v.mu.Unlock()
	m.w.dispatch(jobs)
	return err
}

// event gives the map writer an event and does what comes of it.
func (m *mapper) event(f func(now time.Duration) error) error {
	var err error
	m.w.input(func(now time.Duration) { err = f(now) })
	return err
}

// await waits for a condition, the end of the checkpoint, or of ctx.
func (m *mapper) await(ctx context.Context, until func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		m.v.mu.Lock()
		defer m.v.mu.Unlock()
		m.changed.Broadcast()
	})
	defer stop()
	m.v.mu.Lock()
	for {
		ok := until()
		for _, j := range m.w.take(nil) {
			m.w.jobs.push(j)
		}
		var err error
		switch {
		case m.aborted != nil:
			err = m.aborted
		case m.over != nil:
			err = m.over
		case m.w.err != nil:
			err = m.w.err
		case ok:
		case ctx.Err() != nil:
			err = errs.Wrap(ctx.Err(), "wait for the map writer")
		default:
			m.changed.Wait()
			continue
		}
		m.v.mu.Unlock()
		return err
	}
}

// close writes a last map checkpoint when it is worth while, and seals the map
// segments. A checkpoint that fails costs nothing but a longer replay.
func (m *mapper) close(ctx context.Context) error {
	m.v.mu.Lock()
	worth := m.v.tree.Dirty().Headers >= m.v.cell.cfg.Tuning.CloseHeaders
	m.v.mu.Unlock()
	if worth {
		if err := m.checkpoint(ctx); err != nil {
			m.v.cell.cfg.Logger.Warn("last map checkpoint failed", "volume", m.v.id, "err", err)
		}
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	_ = m.event(func(now time.Duration) error { m.w.maps.Release(now); return nil })
	err := m.await(ctx, func() bool { return m.over != nil })
	if errs.KindOf(err) == errs.Closed {
		err = nil
	}
	return err
}

// stop waits for the goroutine; the writer's life has ended.
func (m *mapper) stop() { m.done.Wait() }
