package client

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// maxPiece is the largest part, in bytes, that one write or read is cut into.
const maxPiece = 16 << 20

// Volume is an open volume. Safe for concurrent use.
type Volume struct {
	cell     *Cell
	name     string
	id       layout.VolumeID
	size     int64
	geometry layout.Geometry
	class    layout.Class
	locks    rangeLock
	stats    volumeStats

	mu      sync.Mutex
	tree    *extent.Map // guarded by mu
	overlay overlay     // guarded by mu

	w      *writer     // nil when read-only
	closed atomic.Bool // Close began
}

var (
	_ io.ReaderAt = (*Volume)(nil)
	_ io.WriterAt = (*Volume)(nil)
	_ io.Closer   = (*Volume)(nil)
)

// Name is the volume's name, [tenant/]volume.
func (v *Volume) Name() string { return v.name }

// Size is the volume's size in bytes when it was opened.
func (v *Volume) Size() int64 { return v.size }

// ReadAt is ReadAtContext without a deadline.
func (v *Volume) ReadAt(p []byte, off int64) (int, error) {
	return v.ReadAtContext(context.Background(), p, off)
}

// WriteAt is WriteAtContext without a deadline.
func (v *Volume) WriteAt(p []byte, off int64) (int, error) {
	return v.WriteAtContext(context.Background(), p, off)
}

// WriteAtContext writes p at off, any offset and length within the volume. It
// returns when the write is acknowledged: stored by every server that takes
// part, and seen by every read from then on; Flush makes it durable. It blocks
// while the memory cap is reached. When ctx ends first the write may or may not
// be done later. Errors: ErrOutOfRange, ErrNoSpace (nothing was written),
// ErrReadOnly, ErrStaleEpoch, ErrLeaseLost, ErrClosed.
func (v *Volume) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	done := make([]*Completion, 0, 1+len(p)/maxPiece)
	for at := 0; at < len(p); {
		n := min(len(p)-at, maxPiece-int((off+int64(at))%layout.BlockSize))
		done = append(done, v.WriteAsync(p[at:at+n], off+int64(at)))
		at += n
	}
	n := 0
	for _, c := range done {
		if err := c.Wait(ctx); err != nil {
			return n, err
		}
		n = min(n+maxPiece, len(p))
	}
	return len(p), nil
}

// WriteAsync begins a write of at most 16 MiB and returns at once, unless the
// memory cap is reached or edge blocks must be read first. p is copied before it
// returns.
func (v *Volume) WriteAsync(p []byte, off int64) *Completion {
	op := "write " + v.name
	if err := v.writable(op, off, int64(len(p))); err != nil {
		return completed(err)
	}
	if len(p) == 0 {
		return completed(nil)
	}
	if len(p) > maxPiece {
		return completed(errs.New(errs.TooLarge, op, "%d bytes in one asynchronous write", len(p)).
			WithHint("at most %d; WriteAt takes any length", maxPiece))
	}
	done := newCompletion()
	if err := v.write(p, off, done); err != nil {
		done.finish(errs.Wrap(err, "%s at %d", op, off))
	}
	return done
}

// write copies p into whole blocks, reading the edges when it is not aligned,
// and submits it.
func (v *Volume) write(p []byte, off int64, done *Completion) error {
	first := layout.BlockNumber(off / layout.BlockSize)
	head := int(off % layout.BlockSize)
	blocks := layout.Blocks(int64(head + len(p)))
	r := layout.Range{Start: first, Count: blocks}
	aligned := head == 0 && len(p)%layout.BlockSize == 0
	defer v.locks.lock(r, !aligned)()
	data := make([]byte, blocks.Bytes())
	if !aligned {
		if err := v.readEdges(data, r, head, len(p)); err != nil {
			return err
		}
	}
	copy(data[head:], p)
	v.stats.writes.Add(1)
	v.stats.writtenBytes.Add(uint64(len(p)))
	return v.w.submit([]stripe.Range{{Start: first, Count: uint32(blocks), Kind: stripe.Write}}, data, false, done)
}

// readEdges fills in the first and last block of an unaligned write.
func (v *Volume) readEdges(data []byte, r layout.Range, head, n int) error {
	ctx := context.Background()
	last := len(data) - layout.BlockSize
	if head != 0 || n < layout.BlockSize {
		if err := v.readBlocks(ctx, data[:layout.BlockSize], r.Start); err != nil {
			return errs.Wrap(err, "read the first block of an unaligned write")
		}
	}
	if tail := (head + n) % layout.BlockSize; tail != 0 && last > 0 {
		if err := v.readBlocks(ctx, data[last:], r.End()-1); err != nil {
			return errs.Wrap(err, "read the last block of an unaligned write")
		}
	}
	return nil
}

// Flush makes every write that was acknowledged before it durable: it then reads
// back while at most m shards of a segment are lost. When ctx ends first the
// flush goes on in the background.
func (v *Volume) Flush(ctx context.Context) error {
	op := "flush " + v.name
	if err := v.writable(op, 0, 0); err != nil {
		return err
	}
	v.stats.flushes.Add(1)
	return errs.Wrap(v.w.flush().Wait(ctx), "%s", op)
}

// Discard tells that a range is no longer needed: it reads as zeros and its
// space comes back. Only whole blocks within the range are discarded.
func (v *Volume) Discard(ctx context.Context, off, n int64) error {
	return v.clear(ctx, "discard in "+v.name, off, n, stripe.Discard)
}

// WriteZeroes makes a range, of any offset and length, read as zeros.
func (v *Volume) WriteZeroes(ctx context.Context, off, n int64) error {
	op := "write zeroes to " + v.name
	if err := v.writable(op, off, n); err != nil {
		return err
	}
	begin := (off + layout.BlockSize - 1) / layout.BlockSize * layout.BlockSize
	end := (off + n) / layout.BlockSize * layout.BlockSize
	if begin >= end {
		_, err := v.WriteAtContext(ctx, make([]byte, n), off)
		return err
	}
	if _, err := v.WriteAtContext(ctx, make([]byte, begin-off), off); err != nil {
		return err
	}
	if _, err := v.WriteAtContext(ctx, make([]byte, off+n-end), end); err != nil {
		return err
	}
	return v.clear(ctx, op, begin, end-begin, stripe.Zero)
}

// clear submits a range without payload.
func (v *Volume) clear(ctx context.Context, op string, off, n int64, kind stripe.RangeKind) error {
	if err := v.writable(op, off, n); err != nil {
		return err
	}
	first := (off + layout.BlockSize - 1) / layout.BlockSize
	for last := (off + n) / layout.BlockSize; first < last; {
		count := min(last-first, 1<<31)
		r := stripe.Range{Start: layout.BlockNumber(first), Count: uint32(count), Kind: kind}
		if err := v.clearOne(ctx, r); err != nil {
			return errs.Wrap(err, "%s", op)
		}
		first += count
	}
	return nil
}

func (v *Volume) clearOne(ctx context.Context, r stripe.Range) error {
	unlock := v.locks.lock(layout.Range{Start: r.Start, Count: layout.BlockCount(r.Count)}, false)
	done := newCompletion()
	err := v.w.submit([]stripe.Range{r}, nil, false, done)
	unlock()
	if err != nil {
		return err
	}
	return done.Wait(ctx)
}

// writable checks that the handle takes writes and that the range lies within
// the volume.
func (v *Volume) writable(op string, off, n int64) error {
	switch {
	case v.w == nil:
		return errs.New(errs.ReadOnly, op, "the volume is open for reading only").WithHint("open it with Write")
	case v.closed.Load():
		return errs.New(errs.Closed, op, "the volume is closed")
	case off < 0 || n < 0 || off > v.size || n > v.size-off:
		return errs.New(errs.OutOfRange, op, "%d bytes at %d are outside the volume's %d bytes", n, off, v.size)
	}
	return nil
}

// lose ends the writer: the lease is gone.
func (v *Volume) lose(err error) { v.w.leaseLost(err) }

func (v *Volume) serverDown(server layout.ServerID) { v.w.serverDown(server) }

// startWriter makes the handle a writer's.
func (v *Volume) startWriter(epoch layout.Epoch, last layout.Seq, root uint64) {
	v.w = newWriter(v, epoch, last)
	v.w.mapper = newMapper(v, v.w, root)
}

// stop ends the handle's goroutines.
func (v *Volume) stop() {
	v.w.stop()
	v.w.mapper.stop()
}

// Close flushes, writes a map checkpoint when one is worth while, seals the
// open segments and gives the lease back. The volume can't be used any more,
// whatever it returns. It waits for the metadata service as long as that takes;
// CloseContext bounds it.
func (v *Volume) Close() error { return v.CloseContext(context.Background()) }

// CloseContext is Close; when ctx ends first the lease is left to expire, and
// the metadata service has the volume recovered.
func (v *Volume) CloseContext(ctx context.Context) error {
	if v.closed.Swap(true) || v.w == nil {
		return nil
	}
	defer v.cell.forget(v)
	err := v.w.mapper.close(ctx)
	if releaseErr := v.w.release(ctx); err == nil {
		err = releaseErr
	}
	v.stop()
	return errs.Wrap(err, "close %s", v.name)
}
