package bench

import (
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// diskWrite is the ceiling of sequential writes that the disk sets: nothing but k+m
// files of one directory, each written by a goroutine of its own, a unit at a time
// past the page cache, as chunk servers write units. Only the data's part of the
// bytes counts, so its rate compares with a case's.
const diskWrite = "disk-write"

// diskFile is the length of each file, in bytes; from there it is written over.
const diskFile = 128 * mib

// writeDisk writes for a time to files below dir, which it removes, and syncs them
// all within the time.
func writeDisk(ctx context.Context, dir string, k, m int, seconds float64) (t *tally, err error) {
	own, err := os.MkdirTemp(dir, "disk-write-")
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "make a directory for a ceiling")
	}
	defer func() {
		if bad := os.RemoveAll(own); err == nil && bad != nil {
			err = errs.As(bad, errs.Unavailable, "remove a ceiling's files")
		}
	}()
	fsys, err := vfs.NewOS(own)
	if err != nil {
		return nil, err
	}
	r := newRecorder(seconds)
	r.start()
	w := &diskWriter{recorder: r, end: r.begin.Add(time.Duration(seconds * float64(time.Second))), k: k, n: k + m}
	group, ctx := errgroup.WithContext(ctx)
	for i := range k + m {
		group.Go(func() error { return w.file(ctx, fsys, strconv.Itoa(i)) })
	}
	if err := group.Wait(); err != nil {
		return nil, errs.As(err, errs.Unavailable, "write to disk for a ceiling")
	}
	r.last = time.Now()
	one, err := r.tally()
	return &one, err
}

// diskWriter counts what the goroutines write.
type diskWriter struct {
	recorder *recorder
	end      time.Time
	k, n     int

	mu   sync.Mutex
	done int // guarded by mu: units written
}

// file writes one file until the end, one unit at least, and syncs it.
func (w *diskWriter) file(ctx context.Context, fsys vfs.FS, name string) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	p := vfs.AlignedBytes(mib)
	newContent().fill(p, 0, 1)
	for at, first := int64(0), true; (first || time.Now().Before(w.end)) && ctx.Err() == nil; at, first = (at+mib)%diskFile, false {
		began := time.Now()
		if _, err := f.WriteDirect(p, at, false); err != nil {
			return err
		}
		w.count(began)
	}
	return f.Sync()
}

// count counts a unit that was written: of n units in a row, k are data.
func (w *diskWriter) count(began time.Time) {
	w.mu.Lock()
	w.done++
	data := w.done%w.n < w.k
	w.mu.Unlock()
	if data {
		w.recorder.add(began, mib)
	}
}

// disk runs the ceiling that the disk sets, where the disk is known and bare.
func (b *bench) disk(ctx context.Context, c Case) (*sample, error) {
	if !c.Write || c.Random || b.target.own == nil || b.Emulate != "" {
		return nil, nil
	}
	return b.computed(ctx, diskWrite, max(min(b.Seconds, shortestCeiling), b.Seconds*ceilingShare))
}

// computed runs a ceiling that needs no peer once.
func (b *bench) computed(ctx context.Context, name string, seconds float64) (*sample, error) {
	k, m := b.geometry()
	dir := b.Dir
	if b.target != nil && b.target.own != nil {
		dir = b.target.dir
	}
	s, err := b.alone(ctx, b.near, map[string][]int{roleClient: {b.near.pid()}},
		order{Do: orderCompute, Name: name, Dir: dir, K: k, M: m, Seconds: seconds})
	if err != nil {
		return nil, err
	}
	into := b.ceilingSeries(Outcome{Name: ceilingPrefix + name, BlockBytes: mib, QueueDepth: 1, Clients: 1})
	into.samples = append(into.samples, s)
	return s, nil
}
