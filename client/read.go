package client

import (
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
// ErrUnavailable (more than m units of a stripe are damaged or out of reach),
// ErrDeadline, ErrOutOfRange, ErrClosed.
func (v *Volume) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	return v.Readv(ctx, [][]byte{p}, off)
}

// Readv reads into several buffers, one after another, from off.
func (v *Volume) Readv(ctx context.Context, bufs [][]byte, off int64) (int, error) {
	op := "read " + v.name
	if off < 0 {
		return 0, errs.New(errs.OutOfRange, op, "offset %d is negative", off)
	}
	if v.closed.Load() {
		return 0, errs.New(errs.Closed, op, "the volume is closed")
	}
	if off >= v.size {
		return 0, io.EOF
	}
	n := vec(bufs).size()
	var end error
	if int64(n) > v.size-off {
		n, end = int(v.size-off), io.EOF
		bufs = vec(bufs).slice(nil, 0, n)
	}
	if n == 0 {
		return 0, nil
	}
	if err := v.readBytes(ctx, bufs, off, n); err != nil {
		return 0, errs.Wrap(err, "%s: %d bytes at %d", op, n, off)
	}
	v.stats.reads.Add(1)
	v.stats.readBytes.Add(uint64(n))
	return n, end
}

// readBytes reads any range: whole blocks straight into the caller's buffers,
// the edges of an unaligned read through a block of its own.
func (v *Volume) readBytes(ctx context.Context, bufs vec, off int64, n int) error {
	head, tail := int(off%layout.BlockSize), int((off+int64(n))%layout.BlockSize)
	first := layout.BlockNumber(off / layout.BlockSize)
	if head == 0 && tail == 0 {
		return v.readVec(ctx, bufs, first)
	}
	blocks := layout.Blocks(int64(head + n))
	if blocks == 1 {
		var edge [layout.BlockSize]byte
		if err := v.readVec(ctx, vec{edge[:]}, first); err != nil {
			return err
		}
		bufs.copyAt(edge[head:head+n], 0)
		return nil
	}
	var edges [2 * layout.BlockSize]byte
	var whole vec
	begin, end := 0, n
	if head != 0 {
		begin = layout.BlockSize - head
		whole = append(whole, edges[:layout.BlockSize])
	}
	end -= tail
	whole = bufs.slice(whole, begin, end-begin)
	if tail != 0 {
		whole = append(whole, edges[layout.BlockSize:])
	}
	if err := v.readVec(ctx, whole, first); err != nil {
		return err
	}
	if head != 0 {
		bufs.copyAt(edges[head:layout.BlockSize], 0)
	}
	bufs.copyAt(edges[layout.BlockSize:][:tail], end)
	return nil
}

// readBlocks reads whole blocks into one buffer.
func (v *Volume) readBlocks(ctx context.Context, buf []byte, first layout.BlockNumber) error {
	return v.readVec(ctx, vec{buf}, first)
}

// readVec reads whole blocks. A segment that was freed since the map was looked
// up holds nothing that the map still names: then the map is looked up again.
func (v *Volume) readVec(ctx context.Context, bufs vec, first layout.BlockNumber) error {
	r := reads.Get().(*readPlan)
	defer r.free()
	for try := 0; ; try++ {
		if err := v.resolve(ctx, r, bufs, first); err != nil {
			return err
		}
		for _, c := range r.copies {
			bufs.copyAt(c.data, c.at)
		}
		if len(r.pieces) == 0 {
			return nil
		}
		err := v.fetch(ctx, bufs, r.pieces)
		if errs.KindOf(err) != errs.NotFound || try == 2 {
			return err
		}
		if err := v.Refresh(ctx); err != nil {
			return err
		}
	}
}

// reads keeps plans for reuse.
var reads = sync.Pool{New: func() any { return &readPlan{} }}

// readPlan is where the bytes of one read come from.
type readPlan struct {
	extents []extent.Extent
	copies  []memoryCopy
	pieces  []readPiece
	covered []bool // by block: found in the overlay
}

// memoryCopy is a run of bytes that an un-flushed write still holds.
type memoryCopy struct {
	data []byte
	at   int // in the read's buffer
}

// readPiece is an extent that is read from the shards into the read's buffer.
type readPiece struct {
	extent.Extent
	at int
}

func (r *readPlan) free() {
	clear(r.copies)
	r.extents, r.copies, r.pieces, r.covered = r.extents[:0], r.copies[:0], r.pieces[:0], r.covered[:0]
	reads.Put(r)
}

// resolve looks a range up: pending writes first, then the map. What reads as
// zeros is cleared; what a stripe that is not flushed holds is copied from
// memory later; the rest are pieces.
func (v *Volume) resolve(ctx context.Context, r *readPlan, bufs vec, first layout.BlockNumber) error {
	whole := layout.Range{Start: first, Count: layout.BlockCount(bufs.size() / layout.BlockSize)}
	for {
		r.copies, r.pieces = r.copies[:0], r.pieces[:0]
		v.mu.Lock()
		var need []extent.PageRef
		r.extents, need = v.tree.Lookup(whole, r.extents[:0])
		if need == nil {
			v.place(r, bufs, whole)
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

// place sorts a range's extents by where their bytes are. Called with v.mu held.
func (v *Volume) place(r *readPlan, bufs vec, whole layout.Range) {
	pending := v.overlay.touches(whole)
	for _, e := range r.extents {
		if !pending {
			v.placeExtent(r, bufs, whole, e)
			continue
		}
		for i := layout.BlockCount(0); i < e.Count; i++ {
			one := e
			one.Start, one.Count = e.Start+layout.BlockNumber(i), 1
			if one.Place.Index += uint32(i); e.Zero {
				one.Place = extent.Place{}
			}
			if data, ok := v.overlay.find(one.Start); !ok {
				v.placeExtent(r, bufs, whole, one)
			} else if at := blockBytes(one.Start - whole.Start); data == nil {
				bufs.zero(at, layout.BlockSize)
			} else {
				r.copies = append(r.copies, memoryCopy{data, at})
			}
		}
	}
}

func (v *Volume) placeExtent(r *readPlan, bufs vec, whole layout.Range, e extent.Extent) {
	at := blockBytes(e.Start - whole.Start)
	if e.Zero {
		bufs.zero(at, int(e.Count.Bytes()))
		return
	}
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
		data := w.payloads[p.Write].data[(p.First + lo - p.At).Bytes():][:(hi - lo).Bytes()]
		r.copies = append(r.copies, memoryCopy{data, at + int((lo - begin).Bytes())})
	}
	return true
}

// evict keeps the map's pages under their cap. Called with v.mu held.
func (v *Volume) evict() {
	if limit := v.cell.cfg.MapCap; v.tree.MemoryBytes() > limit {
		v.tree.Evict(limit / 8 * 7)
	}
}
