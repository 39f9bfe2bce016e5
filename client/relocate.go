package client

import (
	"cmp"
	"context"
	"slices"
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
	// currentStep is how many extents are looked up under the mutex at once.
	currentStep = 256
	// pageTries bounds how often the pages for one step are loaded: between loading
	// and looking they may be evicted again.
	pageTries = 16
)

// liveOf lists what is live in a segment, in block order: from the stripe headers it
// has what was written there, from the map what still is.
func (v *Volume) liveOf(ctx context.Context, id layout.SegmentID) (all []clean.Live, err error) {
	headers, err := v.cell.stripesOf(ctx, id)
	if err != nil {
		return nil, errs.Wrap(err, "read the stripe headers")
	}
	var written []clean.Live
	for _, h := range headers {
		written = clean.AppendWritten(written, h)
	}
	sortByBlock(written)
	for len(written) > 0 {
		n := min(len(written), currentStep)
		if all, err = v.appendLive(ctx, all, written[:n]); err != nil {
			return nil, err
		}
		written = written[n:]
	}
	return all, nil
}

func sortByBlock(list []clean.Live) {
	slices.SortFunc(list, func(a, b clean.Live) int { return cmp.Compare(a.Start, b.Start) })
}

// appendLive appends the parts of extents that still lie where they were written.
func (v *Volume) appendLive(ctx context.Context, list, written []clean.Live) ([]clean.Live, error) {
	for try := 0; ; try++ {
		found, need := v.current(list, written)
		if len(need) == 0 {
			return found, nil
		}
		if try == pageTries {
			return nil, errs.New(errs.Overloaded, "", "the map's pages do not fit into its memory").
				WithHint("raise Config.MapCap, or open fewer volumes at once")
		}
		if err := v.loadPages(ctx, need); err != nil {
			return nil, err
		}
	}
}

func (v *Volume) current(list, written []clean.Live) (found []clean.Live, need []extent.PageRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if found, need = clean.AppendCurrent(v.tree, list, written); len(need) == 0 {
		v.evict()
	}
	return found, need
}

// relocation is a batch of live blocks and their bytes.
type relocation struct {
	list   []clean.Live
	blocks layout.BlockCount
	buf    *buffer
}

// fill reads the batch's bytes as background work, and compares them with their
// checksums.
func (b *relocation) fill(ctx context.Context, v *Volume) error {
	b.buf = v.cell.buffers.get(int(b.blocks.Bytes()))
	data, at := b.buf.whole[:b.blocks.Bytes()], 0
	pieces := make([]readPiece, 0, len(b.list))
	for _, e := range b.list {
		pieces = append(pieces, readPiece{e.Extent, at})
		at += int(e.Count.Bytes())
	}
	err := v.fetchAs(ctx, layout.ClassBackground, vec{data}, pieces)
	if err == nil {
		err = clean.Verify(b.list, data)
	}
	if err != nil {
		b.buf.release()
	}
	return err
}

// relocate appends a batch again. Under the mutex, at the moment at which it gets
// its place in the order of writes, it drops what is not live any more: what a
// later write or discard took from it, also one that is not cut yet. It gives how
// many blocks go; done is finished when they are acknowledged, and only if there
// are any.
func (w *writer) relocate(ctx context.Context, b *relocation, done *Completion) (moved layout.BlockCount, err error) {
	defer b.buf.release()
	for try := 0; ; try++ {
		var need []extent.PageRef
		err := w.hold(ctx, func() (bool, error) {
			_, ready, err := w.core.RelocationReady(w.now(), b.blocks)
			if err != nil || !ready || w.core.Full() {
				return false, err
			}
			moved, need, err = w.admitRelocation(b, done)
			return true, err
		})
		if err != nil || len(need) == 0 || try == pageTries {
			return moved, err
		}
		if err := w.v.loadPages(ctx, need); err != nil {
			return 0, err
		}
	}
}

// coldGeometry gives the geometry of the segment that relocated blocks go to, once
// there is one.
func (w *writer) coldGeometry(ctx context.Context) (g layout.Geometry, err error) {
	err = w.hold(ctx, func() (ready bool, err error) {
		g, _, err = w.core.RelocationReady(w.now(), 1)
		return g.K > 0, err
	})
	return g, err
}

// hold waits, with the mutex held in each look, until a condition holds.
func (w *writer) hold(ctx context.Context, until func() (bool, error)) error {
	stop := context.AfterFunc(ctx, func() {
		w.v.mu.Lock()
		defer w.v.mu.Unlock()
		w.mapper.changed.Broadcast()
	})
	defer stop()
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	for {
		ok, err := until()
		for _, j := range w.take(nil) {
			w.jobs.push(j)
		}
		switch {
		case w.err != nil:
			return w.err
		case ok || err != nil:
			return err
		case ctx.Err() != nil:
			return errs.Wrap(ctx.Err(), "wait for room for relocated blocks")
		}
		w.mapper.changed.Wait()
	}
}

// admitRelocation gives what is still live of a batch to the core. Called with
// v.mu held.
func (w *writer) admitRelocation(b *relocation, done *Completion) (moved layout.BlockCount, need []extent.PageRef, err error) {
	p := &payload{over: done, r: stripe.Range{Kind: stripe.Write}}
	data := b.buf.whole[:b.blocks.Bytes()]
	var ranges []stripe.Range
	from, to := 0, 0 // in data: of the extent, and where what is kept ends
	for _, e := range b.list {
		live, missing := w.stillLive(e.Extent)
		need = append(need, missing...)
		for _, r := range live {
			at := from + blockBytes(r.Start-e.Start)
			if n := int(r.Count.Bytes()); at != to {
				copy(data[to:], data[at:at+n])
			}
			to += int(r.Count.Bytes())
			ranges = append(ranges, stripe.Range{Start: r.Start, Count: uint32(r.Count), Kind: stripe.Write})
			p.sums = append(p.sums, e.Sums[r.Start-e.Start:][:r.Count]...)
			moved += r.Count
		}
		from += int(e.Count.Bytes())
	}
	if len(need) > 0 || moved == 0 {
		return 0, need, nil
	}
	w.lastID++
	p.id = write.WriteID(w.lastID)
	p.buf, p.data, p.left, p.uncut = b.buf.retain(), data[:to], moved, uint32(moved)
	w.payloads[p.id] = p
	if err := w.core.Submit(w.now(), write.Write{ID: p.id, Ranges: ranges, Relocation: true}); err != nil {
		delete(w.payloads, p.id)
		p.buf.release()
		return 0, nil, err
	}
	return moved, nil, nil
}

// stillLive gives the parts of an extent that the map still names there and that
// no pending write is about to replace.
func (w *writer) stillLive(e extent.Extent) (live []layout.Range, need []extent.PageRef) {
	if planted.Is(planted.RelocationBlind) {
		return []layout.Range{e.Range}, nil
	}
	now, need := w.v.tree.Current(e, nil)
	if len(need) > 0 {
		return nil, need
	}
	for _, n := range now {
		live = append(live, n.Range)
	}
	w.v.overlay.each(e.Range, func(_ *payload, pending layout.Range) { live = clean.Without(live, pending) })
	return live, nil
}

// relocatedCut notes that a relocation stripe was cut. It stands in no overlay: what
// it brings is what the map says already. Called with v.mu held.
func (w *writer) relocatedCut(s *write.Stripe) {
	for _, piece := range s.Pieces {
		w.payloads[piece.Write].uncut -= uint32(piece.Blocks)
	}
	w.v.stats.relocatedBytes.Add(s.Header.Shape.DataBytes())
}

// closeCold ends the segment for relocations.
func (w *writer) closeCold() { w.input(func(now time.Duration) { w.core.CloseCold(now) }) }
