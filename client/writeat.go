package client

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

const (
	// maxPiece is the largest part, in bytes, that one write is cut into.
	maxPiece = 16 << 20
	// maxClear is the most blocks that one stripe discards or zeroes.
	maxClear = 1 << 31
)

// WriteAtContext writes p at off, any offset and length within the volume. It
// returns when the write is acknowledged: stored by every server that takes
// part, and seen by every read from then on; Flush makes it durable. It blocks
// while the memory cap is reached. With an error, the first n bytes are written,
// and of the rest any part may be; when ctx ended first it may also be written
// later. Errors: ErrOutOfRange, ErrNoSpace, ErrReadOnly, ErrStaleEpoch,
// ErrLeaseLost, ErrDeadline, ErrClosed.
func (v *Volume) WriteAtContext(ctx context.Context, p []byte, off int64) (n int, err error) {
	began := v.cell.cfg.Trace.now()
	defer func() { v.cell.cfg.Trace.note(v, TraceWrite, off, n, began, err) }()
	if err := v.writable("write "+v.name, off, int64(len(p))); err != nil {
		return 0, err
	}
	var one [1]pendingPiece // most writes are a single piece
	pieces := one[:0]
	for at := 0; at < len(p); {
		size := min(len(p)-at, maxPiece-int((off+int64(at))%layout.BlockSize))
		pieces = append(pieces, pendingPiece{v.writeAsync(ctx, p[at:at+size], off+int64(at), oneWait()), size})
		at += size
	}
	for i, piece := range pieces {
		if err := v.w.await(ctx, piece.done); err != nil {
			for _, rest := range pieces[i+1:] {
				v.w.leave(rest.done)
			}
			return n, err
		}
		n += piece.size
	}
	return n, nil
}

// pendingPiece is a part of a write that is under way.
type pendingPiece struct {
	done *Completion
	size int
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
	began, n := v.cell.cfg.Trace.now(), len(p)
	done := v.writeAsync(v.w.life, p, off, newCompletion())
	if v.cell.cfg.Trace != nil {
		go func() {
			<-done.Done()
			v.cell.cfg.Trace.note(v, TraceWrite, off, n, began, done.Err())
		}()
	}
	return done
}

// writeAsync begins a write of a range that was checked. ctx bounds what must
// happen before it is under way.
func (v *Volume) writeAsync(ctx context.Context, p []byte, off int64, done *Completion) *Completion {
	if err := v.write(ctx, p, off, done); err != nil {
		done.finish(errs.Wrap(err, "write %s: %d bytes at %d", v.name, len(p), off))
	}
	return done
}

// write copies p into whole blocks, reading the edges when it is not aligned,
// and submits it.
func (v *Volume) write(ctx context.Context, p []byte, off int64, done *Completion) error {
	first := layout.BlockNumber(off / layout.BlockSize)
	head := int(off % layout.BlockSize)
	blocks := layout.Blocks(int64(head + len(p)))
	r := layout.Range{Start: first, Count: blocks}
	aligned := head == 0 && len(p)%layout.BlockSize == 0
	lock, err := v.locks.lock(ctx, r, !aligned)
	if err != nil {
		return err
	}
	defer v.locks.unlock(lock)
	buf := v.cell.buffers.get(int(blocks.Bytes()))
	data := buf.whole[:blocks.Bytes()]
	if !aligned {
		err = v.readEdges(ctx, data, r, head, len(p))
	}
	if err == nil {
		copy(data[head:], p)
		v.stats.copiedBytes.Add(uint64(len(p)))
		v.stats.writes.Add(1)
		v.stats.writtenBytes.Add(uint64(len(p)))
		err = v.w.submit(ctx, stripe.Range{Start: first, Count: uint32(blocks), Kind: stripe.Write}, buf, done)
	}
	if err != nil {
		buf.release()
	}
	return err
}

// readEdges fills in the first and last block of an unaligned write.
func (v *Volume) readEdges(ctx context.Context, data []byte, r layout.Range, head, n int) error {
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

// clear submits a range without payload, in as few stripes as can be.
func (v *Volume) clear(ctx context.Context, op string, off, n int64, kind stripe.RangeKind) (err error) {
	began := v.cell.cfg.Trace.now()
	defer func() { v.cell.cfg.Trace.note(v, TraceClear, off, int(n), began, err) }()
	if err := v.writable(op, off, n); err != nil {
		return err
	}
	first := (off + layout.BlockSize - 1) / layout.BlockSize
	for last := (off + n) / layout.BlockSize; first < last; {
		count := min(last-first, maxClear)
		r := stripe.Range{Start: layout.BlockNumber(first), Count: uint32(count), Kind: kind}
		if err := v.clearOne(ctx, r); err != nil {
			return errs.Wrap(err, "%s: %d bytes at %d", op, n, off)
		}
		first += count
	}
	return nil
}

func (v *Volume) clearOne(ctx context.Context, r stripe.Range) error {
	lock, err := v.locks.lock(ctx, layout.Range{Start: r.Start, Count: layout.BlockCount(r.Count)}, false)
	if err != nil {
		return err
	}
	done := oneWait()
	err = v.w.submit(ctx, r, nil, done)
	v.locks.unlock(lock)
	if err != nil {
		return err
	}
	return v.w.await(ctx, done)
}
