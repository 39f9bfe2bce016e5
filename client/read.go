package client

import (
	"cmp"
	"context"
	"io"
	"sync"

	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
)

// ReadAtContext reads len(p) bytes at off, of any alignment, as io.ReaderAt
// does: a read past the volume's end is short and gives io.EOF. Bytes never
// written read as zeros. The bytes are right or there is an error; when ctx ends
// first p may hold anything, but is not touched any more. Errors: ErrCorrupt or
// ErrUnavailable (more than m units of a stripe are damaged, or their servers were out
// of reach for 10 s: those that start again are waited for),
// ErrDeadline, ErrOutOfRange, ErrClosed.
func (v *Volume) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	r := reads.Get().(*readPlan)
	defer r.free()
	r.one[0] = p
	began := v.cell.cfg.Trace.now()
	n, err := v.readv(ctx, r, r.one[:], off)
	v.cell.cfg.Trace.note(v, TraceRead, off, n, began, err)
	return n, err
}

// ReadIn is ReadAtContext in a QoS class of its own, by name: a reader of training
// data may have one read that somebody waits for. Pages of the map that it has to
// load come in the handle's class. Errors: ErrInvalidArgument (the cell has no such
// class), ReadAtContext's.
func (v *Volume) ReadIn(ctx context.Context, class string, p []byte, off int64) (int, error) {
	number, err := v.cell.knownClass(ctx, "read "+v.name, class)
	if err != nil {
		return 0, err
	}
	r := reads.Get().(*readPlan)
	defer r.free()
	r.one[0], r.class = p, number
	began := v.cell.cfg.Trace.now()
	n, err := v.readv(ctx, r, r.one[:], off)
	v.cell.cfg.Trace.noteIn(v, number, TraceRead, off, n, began, err)
	return n, err
}

// Readv reads into several buffers, one after another, from off.
func (v *Volume) Readv(ctx context.Context, bufs [][]byte, off int64) (int, error) {
	r := reads.Get().(*readPlan)
	defer r.free()
	began := v.cell.cfg.Trace.now()
	n, err := v.readv(ctx, r, bufs, off)
	v.cell.cfg.Trace.note(v, TraceRead, off, n, began, err)
	return n, err
}

func (v *Volume) readv(ctx context.Context, r *readPlan, bufs vec, off int64) (int, error) {
	size := v.size.Load()
	switch {
	case off < 0:
		return 0, errs.New(errs.OutOfRange, "read "+v.name, "offset %d is negative", off)
	case v.closed.Load():
		return 0, errs.New(errs.Closed, "read "+v.name, "the volume is closed")
	case off >= size:
		return 0, io.EOF
	}
	n := bufs.size()
	var end error
	if int64(n) > size-off {
		n, end = int(size-off), io.EOF
		bufs = bufs.slice(nil, 0, n)
	}
	if n == 0 {
		return 0, nil
	}
	v.ahead.begin(v, off, n)
	err := v.readBytes(ctx, r, bufs, off, n)
	v.ahead.end(n)
	if err != nil {
		return 0, errs.Wrap(err, "read %s: %d bytes at %d", v.name, n, off)
	}
	v.stats.reads.Add(1)
	v.stats.readBytes.Add(uint64(n))
	return n, end
}

// readBytes reads any range: whole blocks straight into the caller's buffers,
// the edges of an unaligned read through a block of its own.
func (v *Volume) readBytes(ctx context.Context, r *readPlan, bufs vec, off int64, n int) error {
	head, tail := int(off%layout.BlockSize), int((off+int64(n))%layout.BlockSize)
	first := layout.BlockNumber(off / layout.BlockSize)
	if head == 0 && tail == 0 {
		return v.readVec(ctx, r, bufs, first)
	}
	front, back := r.edges[:layout.BlockSize], r.edges[layout.BlockSize:]
	if head+n <= layout.BlockSize {
		r.whole = append(r.whole[:0], front)
		if err := v.readVec(ctx, r, r.whole, first); err != nil {
			return err
		}
		bufs.copyAt(front[head:head+n], 0)
		v.stats.copiedBytes.Add(uint64(n))
		return nil
	}
	begin, end := 0, n-tail
	r.whole = r.whole[:0]
	if head != 0 {
		begin = layout.BlockSize - head
		r.whole = append(r.whole, front)
	}
	r.whole = bufs.slice(r.whole, begin, end-begin)
	if tail != 0 {
		r.whole = append(r.whole, back)
	}
	if err := v.readVec(ctx, r, r.whole, first); err != nil {
		return err
	}
	if head != 0 {
		bufs.copyAt(front[head:], 0)
	}
	bufs.copyAt(back[:tail], end)
	v.stats.copiedBytes.Add(uint64(n - (end - begin)))
	return nil
}

// readBlocks reads whole blocks into one buffer.
func (v *Volume) readBlocks(ctx context.Context, buf []byte, first layout.BlockNumber) error {
	r := reads.Get().(*readPlan)
	defer r.free()
	r.one[0] = buf
	return v.readVec(ctx, r, r.one[:], first)
}

// readVec reads whole blocks. A segment that was freed since the map was looked
// up holds nothing that the map still names: then the map is looked up again.
func (v *Volume) readVec(ctx context.Context, r *readPlan, bufs vec, first layout.BlockNumber) error {
	whole := layout.Range{Start: first, Count: layout.BlockCount(bufs.size() / layout.BlockSize)}
	for try := 0; ; try++ {
		err := v.resolve(ctx, r, whole)
		if freed(err) && try < relookups { // a page of a map that is no more
			if err = v.Refresh(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		for _, z := range r.zeros {
			bufs.zero(blockBytes(z.Start-first), int(z.Count.Bytes()))
		}
		for _, c := range r.copies {
			bufs.copyAt(c.data, c.at)
			v.stats.copiedBytes.Add(uint64(len(c.data)))
			c.buf.release()
		}
		pieces, err := v.serveAhead(ctx, r, bufs)
		if err != nil || len(pieces) == 0 {
			return err
		}
		err = v.fetchAs(ctx, cmp.Or(r.class, v.class), bufs, pieces)
		if !freed(err) || try == relookups {
			return err
		}
		if err := v.Refresh(ctx); err != nil {
			return err
		}
	}
}

// relookups is how often a read looks the map up again because a segment is gone.
const relookups = 3

// reads keeps plans for reuse.
var reads = sync.Pool{New: func() any { return &readPlan{} }}

// readPlan is where the bytes of one read come from.
type readPlan struct {
	extents []extent.Extent
	zeros   []layout.Range
	copies  []memoryCopy
	pieces  []readPiece
	kept    []keptPart  // parts of the pieces that are being fetched ahead, or were
	rest    []readPiece // the others
	covered []bool      // by block: pending writes hold it; empty: none do

	class layout.Class // 0: the handle's
	one   [1][]byte    // a caller's single buffer
	whole vec          // an unaligned read's buffers
	edges [2 * layout.BlockSize]byte
}

// memoryCopy is a run of bytes that an un-flushed write still holds.
type memoryCopy struct {
	data []byte
	at   int     // in the read's buffer
	buf  *buffer // to be released
}

// readPiece is an extent that is read from the shards into the read's buffer.
type readPiece struct {
	extent.Extent
	at int
}

// free drops what the plan refers to and keeps its slices.
func (r *readPlan) free() {
	clear(r.whole)
	clear(r.kept)
	r.one[0], r.whole, r.class, r.kept, r.rest = nil, r.whole[:0], 0, r.kept[:0], r.rest[:0]
	r.reset()
	reads.Put(r)
}

func (r *readPlan) reset() {
	clear(r.copies)
	r.extents, r.zeros, r.copies, r.pieces, r.covered = r.extents[:0], r.zeros[:0], r.copies[:0], r.pieces[:0], r.covered[:0]
}

// resolve looks a range up: pending writes first, then the map. What a stripe
// that is not flushed holds is copied from memory; what the shards hold are
// pieces. A writer that has ended shows nothing: some of what it holds may never
// have become durable.
func (v *Volume) resolve(ctx context.Context, r *readPlan, whole layout.Range) error {
	for {
		r.reset()
		v.mu.Lock()
		if v.w != nil && v.w.ending() != nil {
			defer v.mu.Unlock()
			return v.w.ending()
		}
		var need []extent.PageRef
		r.extents, need = v.tree.Lookup(whole, r.extents)
		if need == nil {
			v.place(r, whole)
			v.evict()
			v.mu.Unlock()
			return nil
		}
		v.mu.Unlock()
		if err := v.loadPages(ctx, need); err != nil {
			return err
		}
	}
}

// place sorts a range by where its bytes are. Called with v.mu held.
func (v *Volume) place(r *readPlan, whole layout.Range) {
	v.placePending(r, whole)
	for _, e := range r.extents {
		for i := layout.BlockCount(0); i < e.Count; {
			n, covered := r.run(e.Start+layout.BlockNumber(i)-whole.Start, e.Count-i)
			if !covered {
				v.placeExtent(r, whole, e.Part(i, n))
			}
			i += n
		}
	}
}

// run tells how many blocks from one on are alike in being covered or not.
func (r *readPlan) run(from layout.BlockNumber, most layout.BlockCount) (n layout.BlockCount, covered bool) {
	if len(r.covered) == 0 {
		return most, false
	}
	list := r.covered[from:][:most]
	covered = list[0]
	for n = 1; n < most && list[n] == covered; n++ {
	}
	return n, covered
}

// placePending takes what pending writes hold, the newest first.
func (v *Volume) placePending(r *readPlan, whole layout.Range) {
	v.overlay.each(whole, func(p *payload, part layout.Range) {
		if len(r.covered) == 0 {
			r.covered = append(r.covered, make([]bool, whole.Count)...)
		}
		for part.Count > 0 {
			n, covered := r.run(part.Start-whole.Start, part.Count)
			one := layout.Range{Start: part.Start, Count: n}
			part.Start, part.Count = part.Start+layout.BlockNumber(n), part.Count-n
			if covered {
				continue
			}
			for i := range r.covered[one.Start-whole.Start:][:n] {
				r.covered[int(one.Start-whole.Start)+i] = true
			}
			if data := p.at(one); data != nil {
				r.copies = append(r.copies, memoryCopy{data, blockBytes(one.Start - whole.Start), p.buf.retain()})
			} else {
				r.zeros = append(r.zeros, one)
			}
		}
	})
}

func (v *Volume) placeExtent(r *readPlan, whole layout.Range, e extent.Extent) {
	if e.Zero {
		r.zeros = append(r.zeros, e.Range)
		return
	}
	at := blockBytes(e.Start - whole.Start)
	if v.w == nil || !v.w.unflushed(r, e, at) {
		r.pieces = append(r.pieces, readPiece{e, at})
	}
}

func blockBytes(b layout.BlockNumber) int { return int(layout.BlockCount(b).Bytes()) }

// unflushed lists the bytes of an extent that lies in a stripe that is not
// flushed; false when it doesn't. Called with v.mu held.
func (w *writer) unflushed(r *readPlan, e extent.Extent, at int) bool {
	s := w.stripes.at(e.Place.Segment, e.Place.Offset)
	if s == nil {
		return false
	}
	begin, end := layout.BlockCount(e.Place.Index), layout.BlockCount(e.Place.Index)+e.Count
	for _, p := range s.Pieces {
		lo, hi := max(begin, p.At), min(end, p.At+p.Blocks)
		if lo >= hi {
			continue
		}
		from := w.payloads[p.Write]
		data := from.data[(p.First + lo - p.At).Bytes():][:(hi - lo).Bytes()]
		r.copies = append(r.copies, memoryCopy{data, at + int((lo - begin).Bytes()), from.buf.retain()})
	}
	return true
}
