package inprocess

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strake/client"
	"strake/proto/pb"
)

var (
	overwriteMiB  = flag.Int64("overwrite.mib", 256, "size of the volume that BenchmarkOverwrite overwrites three times")
	overwriteDisk = flag.Bool("overwrite.disks", false, "BenchmarkOverwrite's servers have directories for disks, in place of memory")
)

const (
	spaceBar = 1.8 // of bytes stored over bytes of the user, parity's 1.5 included
	writeBar = 3.0 // of bytes appended in data units over bytes that the client wrote
	// cleanedWithin is how long after the last write space must have come back.
	cleanedWithin = 60 * time.Second
)

// overwrite is a volume that is filled in sequence, then overwritten at random in
// single blocks.
type overwrite struct {
	size  int64
	times int64 // the size that is written at random
	depth int   // writes on their way
	flush int   // a flush after so many writes; 0: none but the last
}

// amplification is what an overwriting costs.
type amplification struct {
	space   float64 // bytes of segments at chunk servers over the volume's
	disk    float64 // the same with logs and indexes, as the disks count
	write   float64 // bytes in data units over bytes that the client wrote
	atOnce  float64 // space when the last write had been flushed, but for what logs hold
	settled time.Duration
}

func (a amplification) String() string {
	return fmt.Sprintf("space %.3f (%.3f at once, %.3f with logs and indexes), writes %.3f, settled after %v", a.space, a.atOnce, a.disk, a.write, a.settled)
}

// run writes, waits until done finds that the cleaner is, and measures.
func (o overwrite) run(t testing.TB, c *Cell, cell *client.Cell, v *client.Volume, done func()) (a amplification) {
	t.Helper()
	ctx := t.Context()
	fill(t, v, o.size)
	before := v.Stats()
	o.blocks(t, v)
	written := time.Now()
	a.atOnce = float64(c.stored()) / float64(o.size)
	done()
	a.settled = time.Since(written)
	info, err := cell.Volume(ctx, "v")
	if err != nil {
		t.Fatal(err)
	}
	live, after := float64(o.size), v.Stats()
	t.Logf("%d segments, %d MiB stored in sealed ones, %d MiB of garbage by the last root, %d MiB relocated",
		info.Segments, info.StoredBytes/mib, info.GarbageBytes/mib, after.Relocated/mib)
	a.space = float64(c.taken(t, v)) / live
	a.disk = float64(c.onDisks(t)) / live
	a.write = float64(after.AppendedBytes-before.AppendedBytes) / float64(after.WrittenBytes-before.WrittenBytes)
	return a
}

// fill writes a volume in sequence.
func fill(t testing.TB, v *client.Volume, size int64) {
	t.Helper()
	for at := int64(0); at < size; at += 4 * mib {
		if _, err := v.WriteAt(pattern(uint64(at), int(min(4*mib, size-at))), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// blocks overwrites.
func (o overwrite) blocks(t testing.TB, v *client.Volume) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	p := pattern(7, block)
	under := make([]*client.Completion, o.depth)
	for i := range int(o.size / block * o.times) {
		if d := under[i%o.depth]; d != nil {
			if err := d.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		under[i%o.depth] = v.WriteAsync(p, r.Int64N(o.size/block)*block)
		if o.flush > 0 && i%o.flush == o.flush-1 {
			if err := v.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := v.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stored is what units take on all chunk servers.
func (c *Cell) stored() (n uint64) {
	for _, d := range c.Chunkds {
		n += d.server.Stored()
	}
	return n
}

// taken is what all segments of a volume hold on their shards; it closes the volume,
// since a segment that is open has no length yet.
func (c *Cell) taken(t testing.TB, v *client.Volume) (n int64) {
	t.Helper()
	open := map[uint64]bool{}
	add := func(s *pb.Segment) {
		for _, sh := range s.Seal.GetShards() {
			n += int64(sh.Length)
		}
	}
	for _, s := range segments(t, c, "v") {
		open[s.Id] = s.Seal == nil
		add(s)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range segments(t, c, "v") {
		if open[s.Id] {
			add(s)
		}
	}
	return n
}

// onDisks is what all disks count.
func (c *Cell) onDisks(t testing.TB) (n uint64) {
	t.Helper()
	for _, d := range c.Chunkds {
		u, err := d.Disk.Usage()
		if err != nil {
			t.Fatal(err)
		}
		n += u.Total - u.Free
	}
	return n
}

// rested waits until neither what is stored nor what was moved has changed for as
// long as a writer takes to look at its volume again, at most cleanedWithin.
func (c *Cell) rested(v *client.Volume) {
	const still = 20 * time.Second
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var last string
	begun := time.Now()
	told := begun
	for since := begun; time.Since(begun) < cleanedWithin && time.Since(since) < still; <-tick.C {
		s := v.Stats()
		if time.Since(told) >= 5*time.Second {
			told = time.Now()
			c.t.Logf("after %.0f s: %d MiB stored, %d MiB relocated, %d roots", time.Since(begun).Seconds(), c.stored()/mib, s.Relocated/mib, s.MapRoots)
		}
		if now := fmt.Sprint(c.stored(), s.Relocated, s.MapRoots); now != last {
			last, since = now, time.Now()
		}
	}
}

// shardsFor gives a volume as many segments as one of 4 GiB has with the default
// shard length of 64 MiB.
func shardsFor(size int64) int64 { return min(max(size/64, 4*mib), 64*mib) }

// BenchmarkOverwrite overwrites a volume three times in random blocks, with a writer
// that cleans as it does by default, and judges what is stored at most 60 s after the
// last write. Run it with -benchtime 1x; -overwrite.mib is the size.
func BenchmarkOverwrite(b *testing.B) {
	size := *overwriteMiB * mib
	for _, o := range []overwrite{{size, 3, 32, 0}, {size, 3, 1, 0}} {
		b.Run(fmt.Sprintf("depth=%d", o.depth), func(b *testing.B) {
			for range b.N {
				a := o.measure(b)
				b.ReportMetric(a.space, "stored/live")
				b.ReportMetric(a.write, "appended/written")
				b.ReportMetric(a.disk, "disk/live")
				b.ReportMetric(a.atOnce, "stored/live-at-once")
				b.ReportMetric(a.settled.Seconds(), "s-to-settle")
				if a.space > spaceBar || a.write > writeBar {
					b.Logf("missed: %v", a)
				}
			}
		})
	}
}

func (o overwrite) measure(b *testing.B) amplification {
	options := Options{Direct: true, ShardLength: shardsFor(o.size)}
	if *overwriteDisk {
		options.Disk = disksIn(b.TempDir(), "disk")
	}
	c := Start(b, options)
	cell := c.Dial()
	if _, err := cell.CreateVolume(b.Context(), "v", client.VolumeOptions{Size: o.size, K: 4, M: 2}); err != nil {
		b.Fatal(err)
	}
	v, err := cell.Open(context.Background(), "v", writing)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	return o.run(b, c, cell, v, func() { c.rested(v) })
}

// TestSpaceAndWritesOfARandomOverwriteStayWithinTheirBars is the benchmark in small.
func TestSpaceAndWritesOfARandomOverwriteStayWithinTheirBars(t *testing.T) {
	o := overwrite{size: 24 * mib, times: 2, depth: 32}
	c := Start(t, Options{Direct: true, Client: unattended})
	cell, v := volume(t, c, o.size, 4, 2)
	a := o.run(t, c, cell, v, func() {
		if _, err := v.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Eventually("what was cleaned is freed", func() error {
			if n := float64(storedOf(t, cell)) / float64(o.size); n > spaceBar {
				return fmt.Errorf("%.2f bytes are stored for each", n)
			}
			return nil
		})
	})
	t.Log(a)
	const smallest = 0.5 // half of what the writer's open segment may hold in vain is much of so small a volume
	if a.write > writeBar || a.space < 1.5 || a.space > spaceBar+smallest {
		t.Errorf("want writes of at most %.2f and space from 1.5 to %.2f", writeBar, spaceBar+smallest)
	}
}

// TestThePaddingOfUnitsCountsAsAppended writes five blocks over four data shards: three
// units of two blocks.
func TestThePaddingOfUnitsCountsAsAppended(t *testing.T) {
	c := Start(t, Options{})
	_, v := volume(t, c, mib, 4, 2)
	write(t, v, pattern(1, 5*block), 0)
	if n := v.Stats().AppendedBytes; n != 6*block {
		t.Errorf("%d bytes were appended in data units, want %d", n, 6*block)
	}
	closed(t, v)
}
