package inprocess

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strake/client"
	"strake/internal/vfs"
	"strake/proto/pb"
)

// TestAHungServerCostsOneReadAQuarterOfASecond pauses a server under readers that
// know it: one of their reads may be late, those after it go around the server.
func TestAHungServerCostsOneReadAQuarterOfASecond(t *testing.T) {
	c := Start(t, Options{})
	_, v := volume(t, c, 32*mib, 4, 2)
	want := pattern(1, 16*mib)
	write(t, v, want, 0)
	flush(t, v)
	for range 3 {
		holds(t, v, want, 0)
	}
	c.Chunkds[2].Pause()
	begun := time.Now()
	r := rand.New(rand.NewPCG(1, 1))
	slow, most := 0, time.Duration(0)
	const each, count = 64 << 10, 200
	for range count {
		at := r.Int64N(16*mib/each) * each
		start := time.Now()
		holds(t, v, want[at:][:each], at)
		took := time.Since(start)
		most = max(most, took)
		if took > 100*time.Millisecond {
			slow++
		}
	}
	t.Logf("%d reads in %v, the slowest %v, %d above 100 ms", count, time.Since(begun), most, slow)
	if most > time.Second || slow > 10 { // this machine may be slow itself
		t.Errorf("%d reads took more than 100 ms, the slowest %v", slow, most)
	}
	c.Chunkds[2].Resume()
	c.Eventually("the server is read again", func() error {
		before := v.Stats().DegradedReads
		for at := int64(0); at < 16*mib; at += mib {
			holds(t, v, want[at:][:mib], at)
		}
		if n := v.Stats().DegradedReads - before; n > 0 {
			return fmt.Errorf("%d reads were degraded", n)
		}
		return nil
	})
	closed(t, v)
}

// TestAReadOutlastsTheEndOfAllConnections breaks every connection at once under a
// read, as a change of all addresses does. No server is lost, so nothing fails.
func TestAReadOutlastsTheEndOfAllConnections(t *testing.T) {
	c := Start(t, Options{})
	_, v := volume(t, c, 16*mib, 4, 2)
	want := pattern(1, 4*mib)
	write(t, v, want, 0)
	flush(t, v)
	for _, s := range c.Chunkds {
		s.Pause()
	}
	read := make(chan error, 1)
	go func() { read <- reads(t.Context(), v, want, 0) }()
	c.Eventually("replies are held up by more servers than may be lost", func() error {
		n := 0
		for _, s := range c.Chunkds {
			if s.data.holds() {
				n++
			}
		}
		if n < 4 {
			return fmt.Errorf("by %d", n)
		}
		return nil
	})
	for _, s := range c.Chunkds {
		s.Sever()
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	closed(t, v)
}

// More servers than may be lost start again at once: a read waits for them, unless its
// caller's time is up.
func TestAReadOutlastsARestartOfTooManyServers(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	_, v := volume(t, c, 16*mib, 4, 2)
	want := pattern(1, 4*mib)
	write(t, v, want, 0)
	flush(t, v)
	KillAll(c.Chunkds[:3]...)
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := v.ReadAtContext(soon, make([]byte, len(want)), 0)
	fails(t, "a read with 3 of 6 servers gone and a deadline", err, client.ErrUnavailable, client.ErrDeadline)
	before := v.Stats().ShardRequests
	read := make(chan error, 1)
	go func() { read <- reads(t.Context(), v, want, 0) }()
	c.Eventually("the read asks again and again", func() error {
		if n := v.Stats().ShardRequests - before; n < 50 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	for _, s := range c.Chunkds[:3] {
		s.Restart()
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	closed(t, v)
}

func TestADeadlineIsKeptWhateverHangs(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	_, v := volume(t, c, 16*mib, 2, 1)
	want := pattern(1, mib)
	write(t, v, want, 0)
	flush(t, v)
	for _, s := range c.Chunkds {
		s.Pause()
	}
	short := func(what string, call func(context.Context) error) {
		within(t, time.Second, what, func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			fails(t, what, call(ctx), client.ErrDeadline)
		})
	}
	short("a read", func(ctx context.Context) error {
		_, err := v.ReadAtContext(ctx, make([]byte, mib), 0)
		return err
	})
	short("a write", func(ctx context.Context) error {
		_, err := v.WriteAtContext(ctx, want, 2*mib)
		return err
	})
	short("an unaligned write", func(ctx context.Context) error {
		_, err := v.WriteAtContext(ctx, want[:100], 100)
		return err
	})
	short("a flush", v.Flush)
	for _, s := range c.Chunkds {
		s.Resume()
	}
	holds(t, v, want, 0)
	flush(t, v)
	holds(t, v, want, 2*mib)
	closed(t, v)
}

// TestWritesWaitAtTheMemoryCap pauses all servers under a writer: it takes in what
// the cap allows and goes on when they answer.
func TestWritesWaitAtTheMemoryCap(t *testing.T) {
	long(t)
	c := Start(t, Options{Chunkds: 3, ShardLength: 16 << 20, Client: client.Config{MemoryCap: 64 * mib}})
	_, v := volume(t, c, 256*mib, 2, 1)
	write(t, v, pattern(1, mib), 0)
	for _, s := range c.Chunkds {
		s.Pause()
	}
	var taken atomic.Int64
	done := make(chan error, 1)
	p := pattern(2, mib)
	const total = 160
	go func() {
		var last *client.Completion
		for i := range int64(total) {
			last = v.WriteAsync(p, i*mib)
			taken.Add(1)
		}
		done <- last.Wait(context.Background())
	}()
	c.Eventually("the cap is reached", func() error {
		if n := taken.Load(); n < 63 {
			return fmt.Errorf("%d MiB taken", n)
		}
		return nil
	})
	within(t, 2*time.Second, "a write at the cap", func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := v.WriteAtContext(ctx, p, 200*mib)
		fails(t, "a write at the cap", err, client.ErrDeadline)
	})
	if n := taken.Load(); n > 65 {
		t.Errorf("%d MiB were taken, the cap is 64", n)
	}
	for _, s := range c.Chunkds {
		s.Resume()
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i := range int64(total) {
		holds(t, v, p, i*mib)
	}
	closed(t, v)
}

// TestTooFewServersFreezeWritesUntilMoreCome loses servers one by one: segments
// become narrower, then writes wait, and go on when a server is back.
func TestTooFewServersFreezeWritesUntilMoreCome(t *testing.T) {
	long(t)
	c := Start(t, Options{Chunkds: 4})
	cell, v := volume(t, c, 16*mib, 3, 1)
	p := pattern(1, 300<<10)
	write(t, v, p, 0)
	for i := range 2 { // 3+1 becomes 2+1, and 1+1
		flush(t, v)
		c.Chunkds[i].Kill()
		write(t, v, p, int64(i+1)*mib)
	}
	flush(t, v)
	c.Chunkds[2].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	_, err := v.WriteAtContext(ctx, p, 3*mib)
	cancel()
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err = v.Flush(ctx)
		cancel()
	}
	fails(t, "a write with one server left", err, client.ErrFrozen, client.ErrDeadline, client.ErrUnavailable)
	for i := range 3 {
		c.Chunkds[i].Restart()
	}
	c.WaitUp(cell, 4)
	write(t, v, p, 4*mib)
	flush(t, v)
	for i := range int64(3) {
		holds(t, v, p, i*mib)
	}
	holds(t, v, p, 4*mib)
	closed(t, v)
}

// TestSegmentsNarrowAndWidenAgain loses one server of four, and gets it back: what
// is written meanwhile lies in segments of fewer data shards, what is written after
// in whole ones, m is the same in all, and all of it reads back. A writer avoids a
// server that failed for a while, and has narrow segments ahead then.
func TestSegmentsNarrowAndWidenAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the writer trusts a server again")
	}
	t.Parallel()
	const step, size = 64 << 10, 64 * mib // the volume is written over and over
	c := Start(t, Options{Chunkds: 4, ShardLength: 4 << 20})
	cell, v := volume(t, c, size, 2, 2)
	p, at := pattern(1, step), int64(0)
	newest := func(k uint32) func() error {
		return func() error {
			write(t, v, p, at%size)
			flush(t, v)
			at += step
			if got := newestGeometry(t, c, "v"); got.GetK() != k || got.GetM() != 2 {
				return fmt.Errorf("the newest sealed segment is %d+%d", got.GetK(), got.GetM())
			}
			return nil
		}
	}
	c.Eventually("segments are whole", newest(2))
	c.Chunkds[0].Kill()
	c.Eventually("segments are narrow", newest(1))
	c.Chunkds[0].Restart()
	c.WaitUp(cell, 4)
	c.Within(2*time.Minute, "segments are whole again", newest(2))
	for off := int64(0); off < min(at, size); off += step {
		holds(t, v, p, off)
	}
	closed(t, v)
}

// newestGeometry is that of a volume's newest sealed data segment, nil without one.
func newestGeometry(t *testing.T, c *Cell, name string) (g *pb.Geometry) {
	t.Helper()
	ask(t, c, func(ctx context.Context, m pb.MetaClient) error {
		v, err := m.GetVolume(ctx, &pb.GetVolumeRequest{Name: name, Tenant: "default"})
		if err != nil {
			return err
		}
		r, err := m.ListSegments(ctx, &pb.ListSegmentsRequest{Volume: v.Volume.Id})
		newest := uint64(0)
		for _, s := range r.GetSegments() {
			if !s.Map && s.Seal != nil && s.Id > newest {
				newest, g = s.Id, s.Geometry
			}
		}
		return err
	})
	return g
}

// TestAMetadataOutageStopsNobody stops the metadata service for longer than a
// session lasts: open volumes are read, written and flushed meanwhile.
func TestAMetadataOutageStopsNobody(t *testing.T) {
	t.Parallel()
	outage := 20 * time.Second
	if testing.Short() {
		outage = 4 * time.Second
	}
	c := Start(t, Options{Chunkds: 4, ShardLength: 64 << 20})
	cell, v := volume(t, c, 8*mib, 2, 1)
	var h history
	r := rand.New(rand.NewPCG(6, 6))
	h.run(t, r, v, 300, 200)
	reader := open(t, cell, "v", client.OpenOptions{})
	if err := h.flush(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := c.Metas[0].Stop(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < outage; <-tick.C {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		h.next(r, v, 300)
		if err := h.flush(ctx, v); err != nil {
			t.Fatalf("after %v without metadata: %v", time.Since(begun), err)
		}
		if _, err := reader.ReadAtContext(ctx, make([]byte, block), 0); err != nil {
			t.Fatalf("after %v without metadata: %v", time.Since(begun), err)
		}
		cancel()
	}
	c.Metas[0].Start()
	if err := h.check(t.Context(), v, 300); err != nil {
		t.Fatal(err)
	}
	closed(t, v)
}

// TestAFirstReadOutlastsAnElection reads what a reader has no placement of yet
// while no metadata server answers, for longer than a leader's election takes.
func TestAFirstReadOutlastsAnElection(t *testing.T) {
	c := Start(t, Options{Chunkds: 3, Client: client.Config{Tuning: client.Tuning{CloseHeaders: 1}}})
	cell, v := volume(t, c, 8*mib, 2, 1)
	want := pattern(1, 4*mib)
	write(t, v, want, 0)
	closed(t, v)
	if info, err := cell.Volume(t.Context(), "v"); err != nil || info.MapRoot == 0 {
		t.Fatalf("root %d: %v", info.MapRoot, err)
	}
	v = open(t, c.Dial(), "v", client.OpenOptions{})
	if err := c.Metas[0].Stop(); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { read <- reads(t.Context(), v, want, 0) }()
	time.Sleep(3 * time.Second)
	c.Metas[0].Start()
	if err := <-read; err != nil {
		t.Error(err)
	}
	closed(t, v)
}

// TestAServerIsFoundAtItsNewAddress restarts a server elsewhere.
func TestAServerIsFoundAtItsNewAddress(t *testing.T) {
	c := Start(t, Options{Chunkds: 2})
	cell, v := volume(t, c, 8*mib, 1, 1)
	want := pattern(1, mib)
	write(t, v, want, 0)
	closed(t, v)
	v = open(t, cell, "v", client.OpenOptions{})
	holds(t, v, want, 0)
	for _, s := range c.Chunkds {
		s.Kill()
		s.Move()
		s.Restart()
	}
	c.Eventually("both servers are found", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return reads(ctx, v, want, 0)
	})
	closed(t, v)
}

// TestRottenBytesAreReadAroundAndReported flips bits of all servers' files, in
// other rows on each.
func TestRottenBytesAreReadAroundAndReported(t *testing.T) {
	c := Start(t, Options{Chunkds: 3})
	_, v := volume(t, c, 16*mib, 2, 1)
	want := pattern(1, 8*mib)
	write(t, v, want, 0)
	closed(t, v)
	cell := c.Dial()
	v = open(t, cell, "v", client.OpenOptions{})
	flipped := 0
	for i, s := range c.Chunkds {
		flipped += rot(t, s.Disk, int64(i)*64*block+100)
	}
	holds(t, v, want, 0)
	if v.Stats().DegradedReads == 0 {
		t.Errorf("no read was degraded after %d bits were flipped", flipped)
	}
	c.Eventually("the metadata service knows of bad shards", func() error {
		s, err := cell.Status(t.Context())
		if err == nil && !slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, "corrupt") }) {
			err = fmt.Errorf("its problems are %q", s.Problems)
		}
		return err
	})
	closed(t, v)
}

// rot flips a bit in every megabyte of the shards on a disk.
func rot(t *testing.T, disk *vfs.Mem, from int64) (flipped int) {
	t.Helper()
	names, err := disk.List("shards")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := "shards/" + name
		info, err := disk.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := from; at < info.Size(); at += mib {
			if disk.FlipBit(path, at, 3) == nil {
				flipped++
			}
		}
	}
	if flipped == 0 {
		t.Fatal("nothing to flip")
	}
	return flipped
}
