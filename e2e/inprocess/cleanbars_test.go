package inprocess

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/internal/vfs"
)

// spoil overwrites every second 64 KiB of a volume that was written in sequence: each
// of its segments is half garbage then.
func spoil(t testing.TB, v *client.Volume, size int64) {
	t.Helper()
	const part = 64 << 10
	p := pattern(3, part)
	var under [32]*client.Completion
	for i := int64(0); i < size/part/2; i++ {
		if d := under[i%32]; d != nil {
			if err := d.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		under[i%32] = v.WriteAsync(p, 2*i*part)
	}
	if err := v.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// sequence reads a volume in sequence, four reads of 4 MiB on their way, until ctx ends,
// and gives MiB per second.
func sequence(ctx context.Context, v *client.Volume, size int64) (float64, error) {
	var next atomic.Int64
	var group errgroup.Group
	begun := time.Now()
	for range 4 {
		group.Go(func() error {
			p := make([]byte, 4*mib)
			for ctx.Err() == nil {
				if _, err := v.ReadAtContext(context.WithoutCancel(ctx), p, (next.Add(1)-1)*4*mib%size); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(next.Load()*4) / time.Since(begun).Seconds(), err
}

// beside reads a volume while work goes on, and gives the reads' MiB per second and the
// work's seconds.
func beside(b *testing.B, v *client.Volume, size int64, work func(context.Context) error) (rate, seconds float64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	done := make(chan error, 1)
	begun := time.Now()
	go func() {
		err := work(b.Context())
		seconds = time.Since(begun).Seconds()
		cancel()
		done <- err
	}()
	rate, err := sequence(ctx, v, size)
	must(b, err)
	must(b, <-done)
	return rate, seconds
}

// BenchmarkReadBesideCleaner reads one volume in sequence while another, half of which is
// garbage, is cleaned: by its writer, which nobody uses, or by a janitor; on disks as they
// are, where the processors are what both want, and on emulated devices, where it is the
// devices. The bar is 0.85 of the rate without, at 20 MiB/s that are freed. Run it with
// -benchtime 2x: each of N rounds measures with and without.
func BenchmarkReadBesideCleaner(b *testing.B) {
	for _, janitor := range []bool{false, true} {
		for _, emulated := range []bool{false, true} {
			b.Run(fmt.Sprintf("janitor=%v/emulated=%v", janitor, emulated), func(b *testing.B) { besideCleaner(b, janitor, emulated) })
		}
	}
}

func besideCleaner(b *testing.B, janitor, emulated bool) {
	const readSize, size = 256 * mib, 256 * mib
	o := Options{Direct: true, ShardLength: 16 * mib, Disk: disksIn(b.TempDir(), "disk"), Client: unattended, Timing: quick()}
	if emulated {
		spec := vfs.ShapeSpec{Read: 60 * mib, Write: 60 * mib, IOPS: 4000, Latency: 100 * time.Microsecond}
		o.Disk = func(int) (vfs.FS, error) {
			return vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), spec, vfs.NewPreciseClock()), nil
		}
	}
	o.Timing.CleanAfter = 100 * time.Millisecond
	c := Start(b, o)
	cell := c.Dial()
	r := made(b, cell, "r", readSize)
	fill(b, r, readSize)
	must(b, r.Close())
	r = reopened(b, c.Dial(), "r", client.OpenOptions{})
	v := made(b, cell, "v", size)
	var with, without, freed float64
	for range b.N {
		fill(b, v, size)
		spoil(b, v, size)
		alone, _ := beside(b, r, readSize, func(context.Context) error { return idle(3 * time.Second) })
		rate, seconds := beside(b, r, readSize, func(ctx context.Context) error {
			if janitor {
				return cleanedByJanitor(ctx, cell, v)
			}
			_, err := v.Clean(ctx)
			return err
		})
		b.Logf("%.0f MiB/s alone, %.0f beside a cleaning of %.1f s", alone, rate, seconds)
		with, without, freed = with+rate, without+alone, freed+float64(size/2)/mib/seconds
		if janitor {
			v = reopened(b, cell, "v", writing)
		}
	}
	b.ReportMetric(with/without, "with/without")
	b.ReportMetric(freed/float64(b.N), "freed-MiB/s") // parity not counted
}

// idle lets time pass, for a measurement.
func idle(d time.Duration) error {
	<-time.After(d)
	return nil
}

// cleanedByJanitor closes a volume and waits until a janitor has cleaned it.
func cleanedByJanitor(ctx context.Context, cell *client.Cell, v *client.Volume) error {
	if err := v.Close(); err != nil {
		return err
	}
	for {
		info, err := cell.Volume(ctx, "v")
		if err != nil || info.GarbageBytes < info.LiveBytes/10 && info.Holder == "" {
			return err
		}
		if err := idle(lookEvery); err != nil {
			return err
		}
	}
}

// BenchmarkWriteAfterSnapshot makes 4 KiB writes durable at random, on real disks, before
// and after a snapshot: the bar is 1.1 times the latency. A round without a snapshot in
// its middle tells how far two halves differ by themselves. Run it with -benchtime 10x.
func BenchmarkWriteAfterSnapshot(b *testing.B) {
	const size, writes = 256 * mib, 400
	dir := b.TempDir()
	c := Start(b, Options{Direct: true, ShardLength: 16 * mib, Disk: disksIn(dir, "disk"), MetaDisk: disksIn(dir, "meta"), Client: unattended})
	cell, admin := c.Dial(), c.Dial()
	v := made(b, cell, "v", size)
	fill(b, v, size)
	r, p := rand.New(rand.NewPCG(1, 1)), pattern(1, block)
	half := func() (l latencies) {
		for range writes {
			l.time(b, func() error {
				if _, err := v.WriteAt(p, r.Int64N(size/block)*block); err != nil {
					return err
				}
				return v.Flush(b.Context())
			})
		}
		return l
	}
	half()
	for _, frozen := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshot=%v", frozen), func(b *testing.B) {
			var before, after latencies
			for i := range b.N {
				before = append(before, half()...)
				if frozen {
					_, err := admin.CreateSnapshots(b.Context(), fmt.Sprintf("v@%d-%d", b.N, i))
					must(b, err)
				}
				after = append(after, half()...)
			}
			before.report(b, "before-")
			after.report(b, "after-")
			for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
				b.ReportMetric(float64(after.at(q))/float64(before.at(q)), "after/before-"+name)
			}
		})
	}
}

// BenchmarkOpenBesideAJanitor opens a volume for writing while a janitor cleans it: the
// bar is 1 s. Run it with -benchtime 5x.
func BenchmarkOpenBesideAJanitor(b *testing.B) {
	const size = 256 * mib
	timing := quick()
	timing.CleanAfter = 100 * time.Millisecond
	dir := b.TempDir()
	c := Start(b, Options{Direct: true, ShardLength: 16 * mib, Disk: disksIn(dir, "disk"), MetaDisk: disksIn(dir, "meta"), Client: unattended, Timing: timing})
	cell := c.Dial()
	v := made(b, cell, "v", size)
	var opens latencies
	for range b.N {
		fill(b, v, size)
		spoil(b, v, size)
		must(b, v.Close())
		c.Eventually("a janitor has it", func() error {
			info, err := cell.Volume(b.Context(), "v")
			if err == nil && info.State != "open" {
				err = fmt.Errorf("it is %s", info.State)
			}
			return err
		})
		opens.time(b, func() error {
			v = reopened(b, cell, "v", writing)
			return nil
		})
	}
	opens.report(b, "")
}
