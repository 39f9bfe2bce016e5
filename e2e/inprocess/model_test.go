package inprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/internal/errs"
)

// edge gives offsets near block, unit and piece boundaries more often than others.
func edge(r *rand.Rand, size int64) int64 {
	steps := []int64{1, 512, block, 16 * block, mib}
	step := steps[r.IntN(len(steps))]
	at := r.Int64N(size/step) * step
	if r.IntN(2) == 0 {
		at += r.Int64N(5) - 2
	}
	return min(max(at, 0), size-1)
}

func length(r *rand.Rand, most int64) int64 {
	n := []int64{1 + r.Int64N(10), block, 1 + r.Int64N(3*block), 64 << 10, 1 + r.Int64N(300<<10)}[r.IntN(5)]
	return min(n, most)
}

// TestEveryRangeReadsAsInAModel runs writers, each on a part of its own, and
// readers of all parts, against an array of bytes.
func TestEveryRangeReadsAsInAModel(t *testing.T) {
	const parts, size = 4, 2 * mib // of each part
	c := Start(t, Options{})
	cell, v := volume(t, c, parts*size, 4, 2)
	model := make([]byte, parts*size)
	var locks [parts]sync.RWMutex
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	var group errgroup.Group
	for part := range int64(parts) {
		r := rand.New(rand.NewPCG(7, uint64(part)))
		group.Go(func() error {
			for i := range rounds {
				at := edge(r, size)
				n := length(r, size-at)
				locks[part].Lock()
				err := change(t.Context(), r, v, model, part*size+at, n, uint64(i))
				locks[part].Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
		other := rand.New(rand.NewPCG(8, uint64(part)))
		group.Go(func() error {
			for range rounds {
				p := other.Int64N(parts)
				at := edge(other, size)
				n := length(other, size-at)
				locks[p].RLock()
				err := reads(t.Context(), v, model[p*size+at:][:n], p*size+at)
				locks[p].RUnlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	holds(t, v, model, 0)
	closed(t, v)
	v = open(t, cell, "v", client.OpenOptions{})
	holds(t, v, model, 0)
	closed(t, v)
}

// change makes one change to a volume and to its model.
func change(ctx context.Context, r *rand.Rand, v *client.Volume, model []byte, at, n int64, seed uint64) error {
	switch r.IntN(12) {
	case 0:
		clear(model[at : at+n])
		return v.WriteZeroes(ctx, at, n)
	case 1:
		if first, last := (at+block-1)/block*block, (at+n)/block*block; first < last {
			clear(model[first:last])
		}
		return v.Discard(ctx, at, n)
	case 2:
		return v.Flush(ctx)
	}
	p := pattern(seed, int(n))
	copy(model[at:], p)
	if m, err := v.WriteAtContext(ctx, p, at); err != nil || m != len(p) {
		return fmt.Errorf("wrote %d of %d bytes at %d: %w", m, n, at, err)
	}
	return nil
}

// TestWritersThatShareBlocksLoseNoBytes has many unaligned writers, each with
// bytes of its own, that meet in the same blocks.
func TestWritersThatShareBlocksLoseNoBytes(t *testing.T) {
	const writers, stride, slots = 8, 700, 60
	c := Start(t, Options{Chunkds: 3})
	_, v := volume(t, c, mib, 2, 1)
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			for i := range slots {
				at := int64(i*writers+w) * stride
				if _, err := v.WriteAtContext(t.Context(), bytes.Repeat([]byte{byte(w*slots + i)}, stride), at); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 0, writers*slots*stride)
	for i := range slots {
		for w := range writers {
			want = append(want, bytes.Repeat([]byte{byte(w*slots + i)}, stride)...)
		}
	}
	holds(t, v, want, 0)
	closed(t, v)
}

// TestAReadNeverSeesATornBlock overwrites a block again and again with a single
// value each time; readers must see one value, never older than one seen before.
func TestAReadNeverSeesATornBlock(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	_, v := volume(t, c, mib, 2, 1)
	write(t, v, make([]byte, block), 8*block)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	for range 3 {
		group.Go(func() error {
			got, last := make([]byte, block), byte(0)
			for ctx.Err() == nil {
				if _, err := v.ReadAt(got, 8*block); err != nil {
					return err
				}
				if n := bytes.Count(got, got[:1]); n != block || got[0] < last {
					return fmt.Errorf("%d of %d bytes are %d; %d was read before", n, block, got[0], last)
				}
				last = got[0]
			}
			return nil
		})
	}
	for i := range 200 {
		write(t, v, bytes.Repeat([]byte{byte(i)}, block), 8*block)
		if i%50 == 49 {
			flush(t, v)
		}
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	closed(t, v)
}

func TestVolumesOfOneProcessKeepApart(t *testing.T) {
	c := Start(t, Options{})
	cell := c.Dial()
	geometries := [][2]int{{4, 2}, {2, 1}, {1, 1}, {3, 3}}
	var group errgroup.Group
	for i, g := range geometries {
		name := fmt.Sprintf("volume-%d", i)
		create(t, cell, name, 16*mib, g[0], g[1])
		group.Go(func() error {
			v, err := cell.Open(t.Context(), name, writing)
			if err != nil {
				return err
			}
			want := pattern(uint64(i+1), 5*mib+i*1000)
			if _, err := v.WriteAt(want, int64(i*777)); err != nil {
				return err
			}
			if err := v.Close(); err != nil {
				return err
			}
			if v, err = cell.Open(t.Context(), name, client.OpenOptions{}); err != nil {
				return err
			}
			return reads(t.Context(), v, want, int64(i*777))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestAFlushCoversAsynchronousWritesBeforeIt(t *testing.T) {
	c := Start(t, Options{Chunkds: 3, Seed: 3})
	cell, v := volume(t, c, 8*mib, 2, 1)
	var want []byte
	var done []*client.Completion
	for i := range 200 {
		p := pattern(uint64(i), 3*block)
		want = append(want, p...)
		done = append(done, v.WriteAsync(p, int64(len(want)-len(p))))
	}
	flush(t, v)
	cell.Abandon()
	for i, d := range done {
		if err := d.Err(); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	v = open(t, c.Dial(), "v", forced)
	holds(t, v, want, 0)
	closed(t, v)
}

func TestOverlappingAsynchronousWritesKeepTheirOrder(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	_, v := volume(t, c, 8*mib, 2, 1)
	r := rand.New(rand.NewPCG(5, 5))
	model := make([]byte, mib)
	for i := range 400 {
		at := r.Int64N(mib/block) * block
		p := pattern(uint64(i), int(min(1+r.Int64N(8), (mib-at)/block)*block))
		v.WriteAsync(p, at)
		copy(model[at:], p)
		if i%40 == 0 {
			holds(t, v, model, 0) // pending bytes show
		}
	}
	holds(t, v, model, 0)
	flush(t, v)
	holds(t, v, model, 0)
	closed(t, v)
}

func TestClearedRangesReadAsZerosWhateverTheirSize(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	const size = 2 << 40
	cell, v := volume(t, c, size, 2, 1)
	p := pattern(1, mib)
	for _, at := range []int64{0, 1 << 40, size - mib} {
		write(t, v, p, at)
	}
	within(t, 20*time.Second, "2 TiB of zeros", func() {
		if err := v.WriteZeroes(t.Context(), 1000, size-2000); err != nil {
			t.Fatal(err)
		}
	})
	holds(t, v, append(append([]byte{}, p[:1000]...), make([]byte, mib)...), 0)
	holds(t, v, append(make([]byte, mib-1000), p[mib-1000:]...), size-mib)
	if err := v.Discard(t.Context(), 0, size); err != nil {
		t.Fatal(err)
	}
	holds(t, v, make([]byte, mib), size-mib)
	write(t, v, p, 1<<40)
	closed(t, v)
	v = open(t, cell, "v", client.OpenOptions{})
	holds(t, v, make([]byte, mib), 0)
	holds(t, v, p, 1<<40)
}

func TestAResizeShowsAfterRefresh(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell, v := volume(t, c, mib, 1, 1)
	if _, err := cell.ResizeVolume(t.Context(), "v", 3*mib, false); err != nil {
		t.Fatal(err)
	}
	if err := v.Refresh(t.Context()); err != nil || v.Size() != 3*mib {
		t.Fatalf("size %d after a refresh: %v", v.Size(), err)
	}
	write(t, v, pattern(1, mib), 2*mib)
	closed(t, v)
}

func TestWhatAShrinkCutOffDoesNotComeBack(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell, v := volume(t, c, 3*mib, 1, 1)
	p := pattern(1, 3*mib)
	write(t, v, p, 0)
	if _, err := cell.ResizeVolume(t.Context(), "v", mib, true); !errors.Is(err, errs.LeaseHeld) {
		t.Errorf("shrunk while it is written: %v", err)
	}
	closed(t, v)
	if _, err := cell.ResizeVolume(t.Context(), "v", mib+1, true); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("shrunk to half a block: %v", err)
	}
	for _, size := range []int64{mib, 3 * mib} {
		if info, err := cell.ResizeVolume(t.Context(), "v", size, true); err != nil || info.Size != size {
			t.Fatalf("resized to %d: %v", info.Size, err)
		}
	}
	v = open(t, cell, "v", client.OpenOptions{})
	holds(t, v, append(p[:mib:mib], make([]byte, 2*mib)...), 0)
	closed(t, v)
}

func TestAnEndedContextEndsAWrite(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	_, v := volume(t, c, mib, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.WriteAtContext(ctx, make([]byte, 100), 0); !errors.Is(err, errs.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	closed(t, v)
}
