package simclient

import (
	"time"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/stripe"
)

const (
	checkpointStep  = 1 << 20
	stepRoom        = layout.BlockCount(3 * checkpointStep / layout.BlockSize)
	checkpointTries = 5
	// closeHeaders is how many headers make a map checkpoint worth while on Close.
	closeHeaders = 24
)

// page is a map page with its bytes; they come after its place.
type page = extent.PageWrite

// mapper writes a volume's map checkpoints.
type mapper struct {
	v *Volume
	w *writer

	one     mutex // held by who makes a checkpoint
	changed cond  // the map writer did something
	number  layout.RootNumber
	cuts    []*write.Stripe
	pages   map[write.WriteID]page
	next    write.WriteID // the number of the next page to be placed
	lists   []stripe.Seal // of Checkpointed
	ready   bool
	aborted error
	over    error // the map writer has ended or released

	retiring *clean.Retiring
	listed   bool                      // what the volume had when it was opened is in retiring
	branch   bool                      // the volume has ancestors
	foreign  map[layout.SegmentID]bool // their segments; nil: not known yet
	flat     bool                      // the map names nothing of theirs any more
	// What the next root tells: blocks that the map names, those of them in the
	// volume's own segments, and pages of its own map segments.
	live, own, rooted uint64
}

// act deals with one action of the map writer.
func (m *mapper) act(a *write.Action) {
	switch a.Kind {
	case write.Cut:
		m.cuts = append(m.cuts, a.Stripe)
	case write.Retry:
		m.w.send(m.w.maps, a.Stripe, a.Shards, m.gather(a.Stripe), false)
	case write.SendSync, write.Allocate, write.SealSegment, write.RequestMove:
		m.w.perform(m.w.maps, a)
	case write.Checkpointed:
		m.ready, m.lists = true, a.Lists
	case write.Aborted:
		m.w.c.watch.Rare("a map checkpoint aborted")
		m.aborted = a.Err
	case write.Fail:
		m.w.c.watch.Ended(m.v.ID, m.w.epoch, errs.Wrap(a.Err, "map writer"))
		m.over = a.Err
	case write.Released:
		m.over = errs.New(errs.Closed, "", "the map writer is closed")
	}
}

// checkpoint writes the map as it is now and has its root recorded. When a
// server fails meanwhile, it begins again.
func (m *mapper) checkpoint(f *Fiber) error {
	if !m.one.lock(f) {
		return errKilled
	}
	defer m.one.unlock()
	for try := 1; ; try++ {
		err := m.try(f)
		switch kind := errs.KindOf(err); {
		case kind == errs.StaleEpoch || kind == errs.LeaseLost:
			m.w.leaseLost(err)
			return errs.Wrap(err, "write the extent map")
		case err == nil || try == checkpointTries || f.dead || m.over != nil || m.w.err != nil:
			return errs.Wrap(err, "write the extent map")
		}
	}
}

func (m *mapper) try(f *Fiber) error {
	c, err := m.freeze(f)
	if err != nil {
		return err
	}
	if !planted.Is(planted.RootBeforeFlush) {
		err = m.v.FlushWait(f)
	}
	if err == nil {
		err = m.writePages(f, c)
	}
	if err == nil {
		err = m.count(f)
	}
	if err == nil {
		err = m.record(f, c)
	}
	if f.dead {
		return errKilled
	}
	if err != nil {
		_ = m.event(func(now time.Duration) error { m.w.maps.Abort(now, err); return nil })
		m.v.tree.Aborted(c)
	} else {
		m.w.c.watch.Rare("a map root recorded")
	}
	m.cuts, m.lists, m.ready, m.aborted, m.next = nil, nil, false, nil, 0
	clear(m.pages)
	return err
}

// writePages makes the changed pages, step by step, and waits until they are durable.
func (m *mapper) writePages(f *Fiber, c *extent.Checkpoint) error {
	if err := m.event(func(now time.Duration) error { return m.w.maps.Begin(now) }); err != nil {
		return err
	}
	for !c.Done() {
		if err := m.await(f, func() bool { return m.w.maps.Ready(m.w.now(), stepRoom) }); err != nil {
			return err
		}
		need, err := m.step(c)
		if err != nil {
			return err
		}
		if err := m.v.loadPages(f, need); err != nil {
			return err
		}
	}
	_ = m.event(func(now time.Duration) error { m.w.maps.Finish(now); return nil })
	return m.await(f, func() bool { return m.ready })
}

// step makes some pages, sends them, and gives the pages that must be loaded first.
func (m *mapper) step(c *extent.Checkpoint) ([]extent.PageRef, error) {
	pages, need, err := c.Next(checkpointStep, m.place)
	for _, p := range pages {
		m.fill(p)
	}
	cuts := m.cuts
	m.cuts = nil
	for _, s := range cuts {
		m.w.send(m.w.maps, s, s.Header.Participants(), m.gather(s), true)
	}
	m.w.take()
	return need, err
}

// place gives pages their spots, from within Next.
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
	for _, a := range m.w.maps.Take(nil) {
		m.act(&a)
	}
	for _, s := range m.cuts[known:] {
		for _, p := range s.Pieces {
			ref := &refs[p.Write-first]
			ref.Segment, ref.Offset, ref.Shape, ref.Index = s.Header.Segment, s.Header.Offset, s.Header.Shape, uint32(p.At)
			m.pages[p.Write] = page{Ref: *ref}
		}
	}
}

// fill finds the number of a page that was placed and keeps its bytes.
func (m *mapper) fill(p page) {
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

// gather lists a map stripe's payload: its pages, and zeros between them.
func (m *mapper) gather(s *write.Stripe) (parts [][]byte) {
	at := layout.BlockCount(0)
	for _, p := range s.Pieces {
		if p.At > at {
			parts = append(parts, make([]byte, (p.At-at).Bytes()))
		}
		parts = append(parts, m.pages[p.Write].Data)
		at = p.At + p.Blocks
	}
	return parts
}

// record has the root recorded; the call is repeated until its outcome is known.
func (m *mapper) record(f *Fiber, c *extent.Checkpoint) error {
	r, err := metaCall[*Recorded](m.w.c, f, forever, attemptTimeout, &RecordRoot{Command: m.w.c.command(), Volume: m.v.ID, Epoch: m.w.epoch,
		Root:  Root{Number: m.number + 1, Covers: c.Covers(), Page: c.Root(), Live: m.live, Own: m.own, Pages: m.rooted},
		Lists: m.lists, Retired: m.retiring.Wish(c.Retired()), RetiredMap: c.RetiredMap()[:min(len(c.RetiredMap()), clean.MaxRetired)], Flat: m.flat})
	if f.dead {
		return errKilled
	}
	if err == nil {
		m.number++
		m.v.tree.Committed(c)
		m.v.tree.Forget(r.Retired...)
		m.retiring.Told(r.Retired)
	}
	m.w.input(func(now time.Duration) { m.w.maps.Recorded(now, err) })
	return err
}

// event gives the map writer an event and does what comes of it.
func (m *mapper) event(event func(now time.Duration) error) (err error) {
	m.w.input(func(now time.Duration) { err = event(now) })
	return err
}

// await waits for a condition, or the end of the checkpoint.
func (m *mapper) await(f *Fiber, until func() bool) error {
	for {
		ok := until()
		m.w.take()
		switch {
		case f.dead:
			return errKilled
		case m.aborted != nil:
			return m.aborted
		case m.over != nil:
			return m.over
		case m.w.err != nil:
			return m.w.err
		case ok:
			return nil
		}
		if !m.changed.wait(f) {
			return errKilled
		}
	}
}

// close writes a last map checkpoint when it is worth while, and seals the map segments.
func (m *mapper) close(f *Fiber) error {
	if m.v.tree.Dirty().Headers >= closeHeaders {
		_ = m.checkpoint(f) // one that fails costs nothing but a longer replay
	}
	if !m.one.lock(f) {
		return errKilled
	}
	defer m.one.unlock()
	_ = m.event(func(now time.Duration) error { m.w.maps.Release(now); return nil })
	err := m.await(f, func() bool { return m.over != nil })
	if errs.KindOf(err) == errs.Closed {
		err = nil
	}
	return err
}
