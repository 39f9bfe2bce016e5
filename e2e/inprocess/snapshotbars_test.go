package inprocess

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strake/client"
)

const (
	gib = 1 << 30
	// piece is how much of a scattered volume one stripe stands for.
	piece = 4 * mib
	// group is how many snapshots are made at once where only their number matters.
	group = 50
)

// scatter writes one block in each 4 MiB of a volume, a stripe each: it has the
// headers and extents of one that is written whole, and a sixteenth of its segments.
func scatter(t testing.TB, v *client.Volume, size int64) {
	t.Helper()
	p := pattern(1, block)
	for at := int64(0); at < size; at += piece {
		if _, err := v.WriteAt(p, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// shelved is a scattered volume with snapshots, whose metadata server syncs.
type shelved struct {
	cell, other *client.Cell // of the volume's writer, and of somebody else
	v           *client.Volume
	size        int64
	snapshots   int
	random      *rand.Rand
}

func newShelved(b *testing.B, size int64, tuning client.Tuning) *shelved {
	b.Helper()
	c := Start(b, Options{Direct: true, MetaDisk: disksIn(b.TempDir(), "meta"), Client: client.Config{Tuning: tuning}})
	w := &shelved{cell: c.Dial(), other: c.Dial(), size: size, random: rand.New(rand.NewPCG(1, 1))}
	w.v = made(b, w.cell, "v", size)
	scatter(b, w.v, size)
	return w
}

// grow makes snapshots until there are n, with a block written and now and then a map
// root recorded between groups of them.
func (w *shelved) grow(b *testing.B, n int) {
	b.Helper()
	for ; w.snapshots < n; w.snapshots += min(group, n) {
		var names []string
		for i := range min(group, n) {
			names = append(names, fmt.Sprintf("v@old-%d", w.snapshots+i))
		}
		must(b, w.write(b.Context()))
		_, err := w.cell.CreateSnapshots(b.Context(), names...)
		must(b, err)
	}
}

func (w *shelved) write(ctx context.Context) error {
	if _, err := w.v.WriteAt(pattern(2, block), w.random.Int64N(w.size/piece)*piece); err != nil {
		return err
	}
	return w.v.Flush(ctx)
}

// reopen closes the volume, so that a root is recorded, and opens it again.
func (w *shelved) reopen(b *testing.B) {
	b.Helper()
	must(b, w.v.Close())
	w.v = reopened(b, w.cell, "v", writing)
}

// BenchmarkSnapshots measures what the number of snapshots and the size of their volume
// must not matter to, through a metadata server whose log is on a disk: bars are 20 ms
// for 99 of 100 creates and removals, 1 s for an open of 1 TiB and for a list, and twice
// the time at 10,000 snapshots. Run it with -benchtime 300x.
func BenchmarkSnapshots(b *testing.B) {
	for _, size := range []int64{gib, 1024 * gib} {
		b.Run(fmt.Sprintf("GiB=%d", size/gib), func(b *testing.B) {
			begun := time.Now()
			w := newShelved(b, size, client.Tuning{CleanEvery: -1, CloseHeaders: 1})
			for _, snapshots := range []int{10, 10_000} {
				w.grow(b, snapshots)
				w.reopen(b)
				b.Logf("%d snapshots after %v", snapshots, time.Since(begun))
				b.Run(fmt.Sprintf("snapshots=%d", snapshots), w.measure)
				w.reopen(b)
			}
		})
	}
}

func (w *shelved) measure(b *testing.B) {
	b.Run("live", w.createAndRemove)
	b.Run("write", func(b *testing.B) { w.each(b, "", func() error { return w.write(b.Context()) }) })
	b.Run("choose", func(b *testing.B) {
		w.each(b, "", func() error {
			_, err := w.v.Clean(b.Context())
			return err
		})
	})
	must(b, w.v.Close())
	b.Run("closed", w.createAndRemove)
	b.Run("open", w.open)
	b.Run("ls", func(b *testing.B) { w.each(b, "", func() error { return w.list(b.Context()) }) })
}

// each times a call again and again.
func (w *shelved) each(b *testing.B, what string, f func() error) {
	var took latencies
	for range b.N {
		took.time(b, f)
	}
	took.report(b, what)
}

func (w *shelved) createAndRemove(b *testing.B) {
	var create, remove latencies
	for range b.N {
		create.time(b, func() error {
			_, err := w.other.CreateSnapshots(b.Context(), "v@x")
			return err
		})
		remove.time(b, func() error { return w.other.RemoveSnapshot(b.Context(), "v@x") })
	}
	create.report(b, "create-")
	remove.report(b, "rm-")
}

// open opens the newest snapshot, and reads a block of it.
func (w *shelved) open(b *testing.B) {
	name, p := fmt.Sprintf("v@old-%d", w.snapshots-1), make([]byte, block)
	w.each(b, "", func() error {
		v, err := w.other.OpenSnapshot(b.Context(), name)
		if err != nil {
			return err
		}
		if _, err = v.ReadAt(p, w.random.Int64N(w.size/piece)*piece); err != nil {
			return err
		}
		return v.Close()
	})
}

// list lists all snapshots, page after page.
func (w *shelved) list(ctx context.Context) error {
	n := 0
	for after := uint64(0); ; {
		page, next, err := w.other.Snapshots(ctx, "v", after, 0, false)
		if err != nil {
			return err
		}
		if n += len(page); next == 0 {
			break
		}
		after = next
	}
	if n != w.snapshots {
		return fmt.Errorf("%d are listed of %d", n, w.snapshots)
	}
	return nil
}

// BenchmarkOpenWithoutARoot opens a snapshot of a volume of 1 TiB that was made before
// any map root: all headers are replayed.
func BenchmarkOpenWithoutARoot(b *testing.B) {
	w := newShelved(b, 1024*gib, client.Tuning{CleanEvery: -1, MapHeaders: 1 << 40})
	w.grow(b, 1)
	b.Run("open", w.open)
}

// BenchmarkRemoveVolumeWithSnapshots removes a volume with 10,000 snapshots for good, and
// tells how long others' commands waited for it. Run it with -benchtime 1x.
func BenchmarkRemoveVolumeWithSnapshots(b *testing.B) {
	w := newShelved(b, 64*mib, client.Tuning{CleanEvery: -1})
	w.grow(b, 10_000)
	must(b, w.v.Close())
	_, err := w.other.CreateVolume(b.Context(), "w", client.VolumeOptions{Size: mib, K: 4, M: 2})
	must(b, err)
	var others latencies
	removed := make(chan error, 1)
	begun := time.Now()
	go func() { removed <- w.cell.RemoveVolume(context.Background(), "v", true) }()
	for took := time.Duration(0); took == 0; {
		others.time(b, func() error {
			if _, err := w.other.CreateSnapshots(b.Context(), "w@x"); err != nil {
				return err
			}
			return w.other.RemoveSnapshot(b.Context(), "w@x")
		})
		select {
		case err := <-removed:
			must(b, err)
			took = time.Since(begun)
			b.ReportMetric(took.Seconds()*1e3, "rm-ms")
		default:
		}
	}
	others.report(b, "others-")
}
