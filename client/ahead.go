package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strake/client/internal/ahead"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	// aheadCap bounds what a volume keeps of what was fetched ahead, in bytes: a
	// window and a half of the longest.
	aheadCap = 24 << 20
	// aheadIdle is for how long it is kept when nobody reads on.
	aheadIdle = 2 * time.Second
)

// readAhead fetches what streams of reads will ask for next. It is kept by its
// place: a read looks its range up in the map as always, and takes what was fetched
// only where the map names the very place that it was fetched from, whose bytes
// never change. So a write, a discard, a cleaning or a rollback needs to tell nobody:
// the map then names another place, and what was kept is never asked for again.
//
// The goroutines that fetch are those of the cell's chunk servers, whose close waits
// for them. Errors are told to nobody: the read that would have needed the bytes asks
// the shards itself.
type readAhead struct {
	busy atomic.Int64 // bytes of reads under way
	some atomic.Bool  // there are chunks: else a read need not look

	mu       sync.Mutex // guards all below
	detector ahead.Detector
	chunks   []*aheadChunk // oldest first
	bytes    int64         // of all of them
	idle     *time.Timer   // drops them all; nil until the first
	closed   bool
}

// aheadChunk is a range that is being fetched, or was.
type aheadChunk struct {
	r    layout.Range
	buf  *buffer
	left layout.BlockCount // not asked for yet; guarded by readAhead.mu
	done chan struct{}     // closed when the two below are set
	from []readPiece       // where the bytes come from, ascending; their At is in buf
	err  error
}

// keptPart is a part of a read that a chunk may hold.
type keptPart struct {
	readPiece
	chunk *aheadChunk
}

// begin is told of a read before it is made, and has fetched what will follow.
func (a *readAhead) begin(v *Volume, off int64, n int) {
	busy := a.busy.Add(int64(n)) - int64(n)
	first := layout.BlockNumber(off / layout.BlockSize)
	r := layout.Range{Start: first, Count: layout.Blocks(off+int64(n)) - layout.BlockCount(first)}
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.detector.Read(r, ahead.StartOf(v.class), max(1, int(v.geometry.K)), layout.BlockNumber(layout.Blocks(v.size.Load())), layout.Blocks(busy))
	for next.Count > 0 && !a.closed {
		room := ahead.Chunk - layout.BlockCount(next.Start)%ahead.Chunk
		one := layout.Range{Start: next.Start, Count: min(next.Count, room)}
		next.Start, next.Count = one.End(), next.Count-one.Count
		a.start(v, one)
	}
}

func (a *readAhead) end(n int) { a.busy.Add(int64(-n)) }

// start has a chunk fetched, unless its blocks are there or there is no room.
func (a *readAhead) start(v *Volume, r layout.Range) {
	overlaps := func(c *aheadChunk) bool { return c.r.Start < r.End() && r.Start < c.r.End() }
	n := r.Count.Bytes()
	if slices.ContainsFunc(a.chunks, overlaps) || !a.makeRoom(n) {
		return
	}
	c := &aheadChunk{r: r, left: r.Count, buf: v.cell.buffers.get(int(n)), done: make(chan struct{})}
	c.buf.retain() // the fetch's
	if !v.cell.shards.work.start(func() { v.fetchAhead(c) }) {
		c.buf.release()
		c.buf.release()
		return
	}
	a.chunks, a.bytes = append(a.chunks, c), a.bytes+n
	a.some.Store(true)
	if a.idle == nil {
		a.idle = time.AfterFunc(aheadIdle, a.drop)
	}
	a.idle.Reset(aheadIdle)
}

// makeRoom drops the oldest chunks until n bytes have room; one that is still being
// fetched keeps its memory, so there is none then.
func (a *readAhead) makeRoom(n int64) bool {
	for a.bytes+n > aheadCap {
		if !a.chunks[0].fetched() {
			return false
		}
		a.remove(0)
	}
	return true
}

// remove forgets a chunk; reads that take from it have its memory still.
func (a *readAhead) remove(i int) {
	c := a.chunks[i]
	a.chunks, a.bytes = slices.Delete(a.chunks, i, i+1), a.bytes-c.r.Count.Bytes()
	c.buf.release()
	a.some.Store(len(a.chunks) > 0)
}

// drop forgets all chunks.
func (a *readAhead) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.chunks) > 0 {
		a.remove(0)
	}
}

// close forgets all chunks and fetches no more.
func (a *readAhead) close() {
	a.mu.Lock()
	a.closed = true
	if a.idle != nil {
		a.idle.Stop()
	}
	a.mu.Unlock()
	a.drop()
}

// fetchAhead fetches a chunk: what the map says now, but for what is in memory.
func (v *Volume) fetchAhead(c *aheadChunk) {
	defer c.buf.release()
	defer close(c.done)
	r := reads.Get().(*readPlan)
	defer r.free()
	if c.err = v.resolve(v.cell.life, r, c.r); c.err != nil {
		return
	}
	for _, m := range r.copies {
		m.buf.release()
	}
	if len(r.pieces) == 0 {
		return
	}
	if c.err = v.fetch(v.cell.life, vec{c.buf.whole[:c.r.Count.Bytes()]}, r.pieces); c.err != nil {
		return
	}
	c.from = slices.Clone(r.pieces)
	for i := range c.from {
		v.stats.aheadBytes.Add(uint64(c.from[i].Count.Bytes()))
	}
}

// serveAhead copies what was fetched ahead of a read's pieces, waiting for what is on its
// way unless the read is in a hurry, and gives the pieces that are left.
func (v *Volume) serveAhead(ctx context.Context, r *readPlan, bufs vec) ([]readPiece, error) {
	a := &v.ahead
	if len(r.pieces) == 0 || !a.some.Load() {
		return r.pieces, nil
	}
	r.kept, r.rest = r.kept[:0], r.rest[:0]
	a.claim(r, v.hurried(ctx, r))
	defer func() {
		for _, k := range r.kept {
			k.chunk.buf.release()
		}
		clear(r.kept)
		r.kept = r.kept[:0]
	}()
	for _, k := range r.kept {
		select {
		case <-k.chunk.done:
		case <-ctx.Done():
			return nil, errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for what is read ahead")
		}
		n := r.take(bufs, k)
		v.stats.aheadUsed.Add(n)
		v.stats.copiedBytes.Add(n)
	}
	return r.rest, nil
}

// hurried tells whether a read had better ask the shards itself than wait for what is
// fetched in the handle's class: it is in another class, or has little time.
func (v *Volume) hurried(ctx context.Context, r *readPlan) bool {
	end, ok := ctx.Deadline()
	return r.class != 0 && r.class != v.class || ok && time.Until(end) < newLate
}

// fetched tells whether the chunk waits for nothing any more.
func (c *aheadChunk) fetched() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// claim sorts a read's pieces by whether a chunk covers them; one that is still being
// fetched does not cover what is in a hurry.
func (a *readAhead) claim(r *readPlan, hurried bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range r.pieces {
		for p.Count > 0 {
			c, n := a.covers(p.Range)
			part := p.part(0, n)
			p = p.part(n, p.Count-n)
			if c == nil || hurried && !c.fetched() {
				r.rest = append(r.rest, part)
				continue
			}
			c.buf.retain()
			r.kept = append(r.kept, keptPart{part, c})
		}
	}
	for i := len(a.chunks) - 1; i >= 0; i-- {
		if a.chunks[i].left == 0 {
			a.remove(i)
		}
	}
}

// covers gives the chunk that has the first block of a range, and how many blocks
// of it; nil: none has so many.
func (a *readAhead) covers(r layout.Range) (*aheadChunk, layout.BlockCount) {
	n := r.Count
	for _, c := range a.chunks {
		switch {
		case c.r.Start <= r.Start && r.Start < c.r.End():
			n = min(n, layout.BlockCount(c.r.End()-r.Start))
			c.left -= min(c.left, n)
			return c, n
		case r.Start < c.r.Start && c.r.Start < r.End():
			n = min(n, layout.BlockCount(c.r.Start-r.Start))
		}
	}
	return nil, n
}

// part gives n blocks of a piece from block i on.
func (p readPiece) part(i, n layout.BlockCount) readPiece {
	return readPiece{p.Extent.Part(i, n), p.at + int(i.Bytes())}
}

// take copies what a chunk has of a part, leaves to the read what it has not, or has
// from another place, and gives the bytes copied.
func (r *readPlan) take(bufs vec, k keptPart) (n uint64) {
	p := k.readPiece
	for p.Count > 0 {
		have, blocks := k.chunk.holds(p.Extent)
		part := p.part(0, blocks)
		p = p.part(blocks, p.Count-blocks)
		if have == nil {
			r.rest = append(r.rest, part)
			continue
		}
		bufs.copyAt(have, part.at)
		n += uint64(blocks.Bytes())
	}
	return n
}

// holds gives the bytes of an extent's first blocks when they were fetched from the
// very place that the extent names, and how many blocks; nil: of so many it has none.
func (c *aheadChunk) holds(e extent.Extent) ([]byte, layout.BlockCount) {
	n := e.Count
	if c.err != nil {
		return nil, n
	}
	for i := range c.from {
		f := &c.from[i]
		switch {
		case f.Start <= e.Start && e.Start < f.End():
			skip := layout.BlockCount(e.Start - f.Start)
			n = min(n, f.Count-skip)
			if p := f.Place; p.Segment != e.Place.Segment || p.Offset != e.Place.Offset || layout.BlockCount(p.Index)+skip != layout.BlockCount(e.Place.Index) {
				return nil, n
			}
			return c.buf.whole[f.at+int(skip.Bytes()):][:n.Bytes()], n
		case e.Start < f.Start && f.Start < e.End():
			n = min(n, layout.BlockCount(f.Start-e.Start))
		}
	}
	return nil, n
}
