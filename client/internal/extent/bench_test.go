package extent

import (
	"math/rand"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// ragged writes n random blocks of a volume of size blocks, `per` to a stripe,
// with checkpoints when they are due, into w's page store.
func ragged(w *world, size, n uint64, per int) (written int64) {
	h := &stripe.Header{Cell: 1, Volume: 1, Epoch: 1, Geometry: layout.Geometry{K: w.k, M: 2}}
	for done := uint64(0); done < n; done += uint64(per) {
		h.Ranges = h.Ranges[:0]
		for range per {
			h.Ranges = append(h.Ranges, stripe.Range{Start: layout.BlockNumber(w.rnd.Int63n(int64(size))), Count: 1, Kind: stripe.Write})
		}
		h.Blocks, h.Seq = uint32(per), w.m.Applied()+1
		w.spot(h)
		if err := w.m.Apply(h); err != nil {
			w.t.Fatal(err)
		}
		if w.m.Dirty().Due() {
			written += w.checkpointAndDrop()
		}
	}
	return written + w.checkpointAndDrop()
}

// checkpointAndDrop frees replaced pages in the store too, as it is memory here.
func (w *world) checkpointAndDrop() (written int64) {
	c, err := w.m.Freeze()
	if err != nil {
		w.t.Fatal(err)
	}
	for !c.Done() {
		pages, need, err := c.Next(1<<20, w.place)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, p := range pages {
			w.pages[p.Ref.key()] = p.Data
			written += int64(len(p.Data))
		}
		w.load(need)
		w.m.Evict(256 << 20)
	}
	for _, ref := range c.freed {
		delete(w.pages, ref.key())
	}
	w.commit(c)
	return written
}

// bar opens the map in w's store as a writer does after a crash: open the root,
// apply the headers since, settle, and look up all of the volume under the cap.
func bar(b *testing.B, w *world, size uint64, headers []*stripe.Header) {
	w.m = nil
	runtime.GC()
	debug.FreeOSMemory()
	var store int64
	for _, p := range w.pages {
		store += int64(cap(p))
	}
	b.ReportMetric(float64(store)/(1<<20), "map-MiB")
	debug.SetGCPercent(20)
	defer debug.SetGCPercent(100)
	for b.Loop() {
		before := heap()
		w.loads = 0
		start := cpuTime()
		m, err := Open(w.root)
		if err != nil {
			b.Fatal(err)
		}
		w.m = m
		first := w.lookup(layout.Range{Count: 1})
		b.ReportMetric(cpu(start), "first-lookup-cpu-ms")
		_ = first
		for _, h := range headers {
			if err := m.Apply(h); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(cpu(start), "open-cpu-ms")
		for need := m.Settle(1024); need != nil; need = m.Settle(1024) {
			w.load(need)
			m.Evict(256 << 20)
		}
		b.ReportMetric(cpu(start), "settled-cpu-ms")
		buf := make([]Extent, 0, 4096)
		for at := uint64(0); at < size; at += 1024 {
			r := layout.Range{Start: layout.BlockNumber(at), Count: 1024}
			var need []PageRef
			for buf, need = m.Lookup(r, buf[:0]); need != nil; buf, need = m.Lookup(r, buf[:0]) {
				w.load(need)
			}
			m.Evict(256 << 20)
		}
		b.ReportMetric(cpu(start), "all-loaded-cpu-ms")
		b.ReportMetric(float64(heap()-before)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(m.MemoryBytes())/(1<<20), "accounted-MiB")
		b.ReportMetric(float64(w.loads), "loads")
	}
}

// cpuTime is the process's processor time: the machine may be shared.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func cpu(start time.Duration) float64 { return (cpuTime() - start).Seconds() * 1e3 }

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// BenchmarkOpenTebibyte: a 1 TiB volume in 4 MiB pieces; bar 1 s and 64 MiB.
func BenchmarkOpenTebibyte(b *testing.B) {
	w := newWorld(b, 1, 1<<28)
	w.shard = 64 << 20
	h := &stripe.Header{Cell: 1, Volume: 1, Epoch: 1, Geometry: layout.Geometry{K: 4, M: 2}, Blocks: 1024}
	for at := uint64(0); at < w.size; at += 1024 {
		h.Seq = w.m.Applied() + 1
		h.Ranges = append(h.Ranges[:0], stripe.Range{Start: layout.BlockNumber(at), Count: 1024, Kind: stripe.Write})
		w.spot(h)
		if err := w.m.Apply(h); err != nil {
			b.Fatal(err)
		}
	}
	w.checkpointAndDrop()
	bar(b, w, w.size, nil)
}

// BenchmarkOpenRagged: 32 M extents of 4 KiB in random order, a full replay of
// 512 Ki headers; bar 3 s and 384 MiB.
func BenchmarkOpenRagged(b *testing.B) {
	w := newWorld(b, 1, 32<<20)
	w.shard = 64 << 20
	raggedInBulk(w, 32<<20)
	seq := w.m.Applied()
	headers := make([]*stripe.Header, 560<<10)
	for i := range headers {
		h := &stripe.Header{Cell: 1, Volume: 1, Epoch: 1, Geometry: layout.Geometry{K: w.k, M: 2}, Blocks: 1, Seq: seq + layout.Seq(i) + 1,
			Ranges: []stripe.Range{{Start: layout.BlockNumber(w.rnd.Int63n(int64(w.size))), Count: 1, Kind: stripe.Write}}}
		w.spot(h)
		h.CRCs = nil
		headers[i] = h
	}
	bar(b, w, w.size, headers)
}

// raggedInBulk gives every block of the volume a place of its own, in random
// order: as if n stripes of one block had been written at random. It goes in
// block order to be quick; places are what is shuffled.
func raggedInBulk(w *world, n int) {
	order := rand.New(rand.NewSource(1)).Perm(n)
	h := &stripe.Header{Cell: 1, Volume: 1, Epoch: 1, Geometry: layout.Geometry{K: w.k, M: 2}, Blocks: 1,
		Ranges: []stripe.Range{{Count: 1, Kind: stripe.Write}}}
	rows := int(w.shard / layout.BlockSize)
	for block, place := range order {
		h.Seq = w.m.Applied() + 1
		h.Ranges[0].Start = layout.BlockNumber(block)
		h.Segment, h.Offset = layout.SegmentID(100+3*(place/rows)), layout.ShardOffset(place%rows)*layout.BlockSize
		h.Shape = h.Geometry.ShapeFor(1, layout.Seq(place))
		if err := w.m.Apply(h); err != nil {
			w.t.Fatal(err)
		}
		if (block+1)%(n/16) == 0 {
			w.checkpointAndDrop()
		}
	}
	w.nextSegment = 1 << 20
	w.dataSegment, w.dataEnd = w.segment(), 0
}

// BenchmarkApplyRandom: one header of one random block over a loaded map.
func BenchmarkApplyRandom(b *testing.B) {
	w := newWorld(b, 1, 1<<20)
	w.shard = 64 << 20
	ragged(w, w.size, 1<<20, 32)
	h := &stripe.Header{Cell: 1, Volume: 1, Epoch: 1, Geometry: layout.Geometry{K: 4, M: 2}, Blocks: 1,
		Ranges: []stripe.Range{{Count: 1, Kind: stripe.Write}}, CRCs: make([]uint32, 3)}
	h.Shape = h.Geometry.ShapeFor(1, 1)
	b.ReportAllocs()
	for b.Loop() {
		h.Seq, h.Segment, h.Offset = w.m.Applied()+1, w.dataSegment, h.Offset+4096
		h.Ranges[0].Start = layout.BlockNumber(w.rnd.Int63n(int64(w.size)))
		if err := w.m.Apply(h); err != nil {
			b.Fatal(err)
		}
		if w.m.Dirty().Headers >= DueHeaders/2 {
			b.StopTimer()
			w.checkpointAndDrop()
			b.StartTimer()
		}
	}
}

// BenchmarkLookupRandom: one block of a loaded ragged map.
func BenchmarkLookupRandom(b *testing.B) {
	w := newWorld(b, 1, 1<<20)
	w.shard = 64 << 20
	ragged(w, w.size, 1<<20, 32)
	buf := w.lookup(layout.Range{Count: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = w.m.Lookup(layout.Range{Start: layout.BlockNumber(w.rnd.Int63n(int64(w.size))), Count: 1}, buf[:0])
	}
}

// BenchmarkCheckpointRandom: map bytes written per changed byte of user data.
func BenchmarkCheckpointRandom(b *testing.B) {
	for _, n := range []uint64{1 << 10, 1 << 14, 1 << 19} {
		b.Run(strconv.FormatUint(n, 10)+"-updates", func(b *testing.B) {
			w := newWorld(b, 1, 4<<20)
			w.shard = 64 << 20
			ragged(w, w.size, 8<<20, 64)
			for b.Loop() {
				written := ragged(w, w.size, n, 1)
				b.ReportMetric(float64(written)/float64(n*layout.BlockSize), "map-B/data-B")
				b.ReportMetric(float64(len(w.pages)), "pages")
			}
		})
	}
}
