package simclient

import (
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Volume is an open volume.
type Volume struct {
	ID       layout.VolumeID
	Name     string
	Epoch    layout.Epoch // of a writer; 0: a reader
	Blocks   layout.BlockCount
	geometry layout.Geometry
	c        *Client
	tree     *extent.Map
	overlay  overlay
	w        *writer           // nil: a reader
	snapshot layout.SnapshotID // that it reads; 0: a volume
	session  layout.SessionID  // that keeps it
	closed   bool
}

// Applied is the last seq that the map shows.
func (v *Volume) Applied() layout.Seq { return v.tree.Applied() }

// FlushedSeq is a writer's flushed seq.
func (v *Volume) FlushedSeq() layout.Seq { return v.w.core.FlushedSeq() }

// Err is why a writer ended, nil while it works.
func (v *Volume) Err() error {
	if v.w == nil {
		return nil
	}
	return v.w.err
}

// Write submits a write of whole blocks; done gets its outcome. An Overloaded
// error means that nothing was taken: wait for Room.
func (v *Volume) Write(first layout.BlockNumber, data []byte, durable bool, done func(error)) error {
	r := stripe.Range{Start: first, Count: uint32(len(data) / layout.BlockSize), Kind: stripe.Write}
	return v.submit(r, data, durable, done)
}

// Discard submits a discard, or with zero a write-zeroes.
func (v *Volume) Discard(first layout.BlockNumber, count layout.BlockCount, zero bool, done func(error)) error {
	r := stripe.Range{Start: first, Count: uint32(count), Kind: stripe.Discard}
	if zero {
		r.Kind = stripe.Zero
	}
	return v.submit(r, nil, false, done)
}

func (v *Volume) submit(r stripe.Range, data []byte, durable bool, done func(error)) error {
	if v.closed {
		return errs.New(errs.Closed, "", "volume %d is closed", v.ID)
	}
	return v.w.submit([]stripe.Range{r}, data, durable, done)
}

// Room waits until the memory cap is not reached any more, or the writer's end.
func (v *Volume) Room(f *Fiber) bool {
	for v.w.full && v.w.err == nil {
		if !v.w.room.wait(f) {
			return false
		}
	}
	return true
}

// Flush makes all that was submitted durable; done gets the outcome.
func (v *Volume) Flush(done func(error)) { v.w.flush(done) }

// FlushWait is Flush for a fiber.
func (v *Volume) FlushWait(f *Fiber) error {
	err := errKilled
	var out error = err
	f.Wait(func(done func()) {
		v.w.flush(func(e error) {
			out = e
			done()
		})
	})
	return out
}

// FlushAcked makes all that was acknowledged durable.
func (v *Volume) FlushAcked(f *Fiber) error {
	var out error = errKilled
	f.Wait(func(done func()) {
		v.w.flushWith(v.w.core.FlushAcked, func(e error) {
			out = e
			done()
		})
	})
	return out
}

// Close flushes, writes a map checkpoint when asked to, seals the open segments
// and gives the lease back.
func (v *Volume) Close(f *Fiber) error {
	if v.closed {
		return nil
	}
	v.closed = true
	if v.snapshot != 0 {
		v.c.unpin(f, v.snapshot)
	}
	if v.w == nil {
		return nil
	}
	defer v.c.forget(v)
	if !v.w.clean.rest(f) {
		return errKilled
	}
	err := v.w.mapper.close(f)
	if releaseErr := v.w.release(f); err == nil {
		err = releaseErr
	}
	v.w.stopped = true
	return errs.Wrap(err, "close volume %d", v.ID)
}

// Checkpoint writes the map and has its root recorded.
func (v *Volume) Checkpoint(f *Fiber) error { return v.w.mapper.checkpoint(f) }
