package vfs_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strake/internal/vfs"
	"strake/internal/vfs/vfstest"
)

const mib = 1 << 20

// shaped gives a file on an emulated device; 0 is an exact, fast clock.
func shaped(t *testing.T, spec string) (vfs.FS, vfs.File) {
	t.Helper()
	s := vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), must[vfs.ShapeSpec](t)(vfs.ParseShape(spec)), nil)
	return s, must[vfs.File](t)(s.Create("a"))
}

// wantTime fails when do takes not the wanted time, give or take 3 %.
func wantTime(t *testing.T, what string, want time.Duration, do func()) {
	t.Helper()
	start := time.Now()
	do()
	got := time.Since(start)
	if math.Abs(float64(got-want)) > 0.03*float64(want) {
		t.Fatalf("%s took %v, want %v", what, got, want)
	}
}

// crowd runs do from several goroutines.
func crowd(n, times int, do func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for range times {
				do()
			}
		})
	}
	wg.Wait()
}

func TestShapeMeetsContract(t *testing.T) {
	vfstest.Run(t, func(*testing.T) vfs.FS {
		return vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), vfs.ShapeSpec{Read: 1 << 40, IOPS: 1e7}, nil)
	})
}

func TestShapeReadsAtRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := shaped(t, "read=60MiB,iops=4000,latency=100us")
		wantTime(t, "120 MiB in reads of 64 KiB", 2*time.Second, func() {
			crowd(4, 480, func() { _, _ = f.ReadAt(make([]byte, 64<<10), 0) })
		})
	})
}

func TestShapeSharesIOPS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, f := shaped(t, "read=60MiB,iops=4000,latency=100us")
		g := must[vfs.File](t)(fsys.Create("b"))
		wantTime(t, "8000 reads of two files", 2*time.Second, func() {
			crowd(8, 500, func() {
				_, _ = f.ReadAt(make([]byte, 4096), 0)
				_, _ = g.ReadAt(make([]byte, 4096), 0)
			})
		})
	})
}

func TestShapeLatencyOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := shaped(t, "latency=10ms")
		wantTime(t, "50 reads at once", 10*time.Millisecond, func() {
			crowd(50, 1, func() { _, _ = f.ReadAt(make([]byte, 4096), 0) })
		})
		wantTime(t, "50 reads in a row", 500*time.Millisecond, func() {
			crowd(1, 50, func() { _, _ = f.ReadAt(make([]byte, 4096), 0) })
		})
	})
}

func TestShapeWritesAreFreeUntilCacheIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := shaped(t, "write=64MiB,latency=1ms")
		p := make([]byte, mib)
		wantTime(t, "16 MiB into the cache", 0, func() {
			crowd(1, 16, func() { must[int](t)(f.WriteAt(p, 0)) })
		})
		wantTime(t, "128 MiB past the cache", 2*time.Second, func() {
			crowd(1, 128, func() { must[int](t)(f.WriteAt(p, 0)) })
		})
		wantTime(t, "sync of a full cache", 251*time.Millisecond, func() { check(t, f.Sync()) })
		wantTime(t, "sync of nothing", time.Millisecond, func() { check(t, f.Sync()) })
	})
}

func TestShapeSyncPaysOnlyForItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, f := shaped(t, "write=64MiB")
		g := must[vfs.File](t)(fsys.Create("b"))
		must[int](t)(f.WriteAt(make([]byte, 8*mib), 0))
		must[int](t)(g.WriteAt(make([]byte, 4*mib), 0))
		check(t, fsys.Rename("b", "c")) // the cache follows the file
		check(t, g.Close())
		g = must[vfs.File](t)(fsys.Open("c"))
		wantTime(t, "sync of 4 MiB", time.Second/16, func() { check(t, g.Sync()) })
		check(t, fsys.Remove("a"))
		wantTime(t, "sync of a removed file", 0, func() { check(t, f.Sync()) })
	})
}

func TestShapeWritebackRunsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := shaped(t, "write=64MiB,latency=1ms")
		must[int](t)(f.WriteAt(make([]byte, 16*mib), 0))
		wantTime(t, "the call", 0, func() { check(t, f.StartWriteback(0, 16*mib)) })
		time.Sleep(200 * time.Millisecond)
		wantTime(t, "sync after 200 ms", 51*time.Millisecond, func() { check(t, f.Sync()) })
		wantTime(t, "160 MiB with write-back, less one cache", 2250*time.Millisecond, func() {
			crowd(1, 160, func() {
				must[int](t)(f.WriteAt(make([]byte, mib), 0))
				check(t, f.StartWriteback(0, mib))
			})
		})
	})
}

// coarse oversleeps always, as real timers do.
type coarse struct{ now time.Time }

func (c *coarse) Now() time.Time        { return c.now }
func (c *coarse) Sleep(d time.Duration) { c.now = c.now.Add(d + 200*time.Microsecond) }

func TestShapeMakesOversleepingGood(t *testing.T) {
	c := &coarse{now: time.Unix(0, 0)}
	s := vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), vfs.ShapeSpec{Read: 64 * mib}, c)
	f := must[vfs.File](t)(s.Create("a"))
	start := c.now
	for range 1024 { // alone, 64 KiB at a time
		_, _ = f.ReadAt(make([]byte, 64<<10), 0)
	}
	if got := c.now.Sub(start); got < 970*time.Millisecond || got > 1030*time.Millisecond {
		t.Fatalf("64 MiB took %v, want 1s", got)
	}
}
