package client

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// Volume is an open volume. Safe for concurrent use.
type Volume struct {
	cell     *Cell
	name     string
	id       layout.VolumeID
	size     atomic.Int64
	geometry layout.Geometry
	class    layout.Class
	tenant   layout.TenantID
	locks    rangeLock
	stats    volumeStats
	ahead    readAhead

	mu      sync.Mutex
	tree    *extent.Map // guarded by mu
	overlay overlay     // guarded by mu
	mapHeld int64       // guarded by mu: bytes of tree that the cell's account has
	mapGone bool        // guarded by mu: the account forgot it for ever

	frozen   *frozen       // the snapshot that the handle reads, nil for a volume
	w        *writer       // nil when read-only
	closed   atomic.Bool   // Close began
	ended    chan struct{} // closed when Close is done
	endError error         // set before ended is closed
}

var (
	_ io.ReaderAt = (*Volume)(nil)
	_ io.WriterAt = (*Volume)(nil)
	_ io.Closer   = (*Volume)(nil)
)

// Name is the volume's name, [tenant/]volume.
func (v *Volume) Name() string { return v.name }

// Size is the volume's size in bytes when it was opened, or at the last Refresh.
func (v *Volume) Size() int64 { return v.size.Load() }

// ReadAt is ReadAtContext without a deadline.
func (v *Volume) ReadAt(p []byte, off int64) (int, error) {
	return v.ReadAtContext(context.Background(), p, off)
}

// WriteAt is WriteAtContext without a deadline.
func (v *Volume) WriteAt(p []byte, off int64) (int, error) {
	return v.WriteAtContext(context.Background(), p, off)
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
	began := v.cell.cfg.Trace.now()
	_, err := v.w.flush(oneWait(), false).await(ctx)
	err = errs.Wrap(err, "%s", op)
	v.cell.cfg.Trace.note(v, TraceFlush, 0, 0, began, err)
	return err
}

// writable checks that the handle takes writes and that the range lies within
// the volume.
func (v *Volume) writable(op string, off, n int64) error {
	size := v.size.Load()
	switch {
	case v.w == nil:
		return errs.New(errs.ReadOnly, op, "the volume is open for reading only").WithHint("open it with Write")
	case v.closed.Load():
		return errs.New(errs.Closed, op, "the volume is closed")
	case off < 0 || n < 0 || off > size || n > size-off:
		return errs.New(errs.OutOfRange, op, "%d bytes at %d are outside the volume's %d bytes", n, off, size)
	}
	return nil
}

// lose ends the writer: the lease is gone.
func (v *Volume) lose(err error) { v.w.leaseLost(err) }

func (v *Volume) serverDown(server layout.ServerID) { v.w.serverDown(server) }

// startWriter makes the handle a writer's.
func (v *Volume) startWriter(l lease, last layout.Seq, r *pb.OpenVolumeReply) {
	v.w = newWriter(v, l, last)
	v.w.mapper = newMapper(v, v.w, r)
	v.w.clean = newCleaner(v, v.w)
	if !v.cell.cfg.janitor && v.cell.cfg.Tuning.CleanEvery > 0 {
		v.w.clean.start()
	}
}

// stop ends the handle's goroutines. Whoever still waits for a write or a flush
// gets err.
func (v *Volume) stop(err error) {
	v.w.leaseLost(err)
	v.w.die()
	v.w.clean.stop()
	v.w.stop()
	v.w.mapper.stop()
}

// Close flushes, writes a map checkpoint when one is worth while, seals the
// open segments and gives the lease back. The volume can't be used any more,
// whatever it returns. It waits for the metadata service as long as that takes;
// CloseContext bounds it.
func (v *Volume) Close() error { return v.CloseContext(context.Background()) }

// CloseContext is Close; when ctx ends first the lease is let go as it is, and
// the metadata service has the volume recovered. A second Close waits for the
// first and gives the same.
func (v *Volume) CloseContext(ctx context.Context) error {
	if v.closed.Swap(true) {
		select {
		case <-v.ended:
			return v.endError
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), "wait until %s is closed", v.name)
		}
	}
	v.ahead.close()
	if v.frozen != nil {
		v.cell.unpin(ctx, v.frozen.id)
	}
	if v.w != nil {
		v.endError = errs.Wrap(v.closeWriter(ctx), "close %s", v.name)
	}
	v.cell.maps.forget(v)
	close(v.ended)
	return v.endError
}

func (v *Volume) closeWriter(ctx context.Context) error {
	defer v.cell.forget(v)
	defer v.cell.waits.begin("close "+v.name, "what was written is made durable and its segments are sealed")()
	v.w.clean.rest(ctx)
	err := v.w.mapper.close(ctx)
	if releaseErr := v.w.release(ctx); err == nil {
		err = releaseErr
	}
	v.stop(errs.New(errs.Closed, "", "the volume was closed"))
	if err != nil {
		v.w.lease.abandon(ctx)
	}
	return err
}

// abandon lets go of everything at once, as a crash would.
func (v *Volume) abandon() {
	if v.closed.Swap(true) {
		<-v.ended
		return
	}
	v.endError = errs.New(errs.Closed, "write "+v.name, "the volume was abandoned")
	v.ahead.close()
	v.stop(v.endError)
	v.cell.maps.forget(v)
	close(v.ended)
}
