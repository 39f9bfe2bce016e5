package store

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"strake/chunkd/format"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// onDisk opens a store with default options on the real file system.
func onDisk(t testing.TB) *Store {
	t.Helper()
	fsys, err := vfs.NewOS(t.TempDir())
	ok(t, err)
	ok(t, Format(fsys, testID))
	s, err := Open(fsys, format.Superblock{}, Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	return s
}

// stream makes units of one shard after another without an allocation: the
// header is written again in place.
type stream struct {
	a      Append
	h      stripe.Header
	length layout.ShardOffset
}

func newStream(t testing.TB, s *Store, id layout.SegmentID, unit uint32) *stream {
	t.Helper()
	st := &stream{a: unitOf(id, 5, 1, 0, unit)}
	h, _, err := stripe.Decode(st.a.Header)
	ok(t, err)
	st.h = *h
	spec := testSpec(id)
	spec.Length = layout.MaxShardLength
	st.length = spec.Length
	ok(t, s.Create(spec))
	return st
}

func (st *stream) next() *Append {
	st.a.Header = st.h.AppendTo(st.a.Header[:0])
	st.h.Seq++
	st.h.Offset += layout.ShardOffset(st.h.Shape.Unit)
	return &st.a
}

func BenchmarkAppendSync4K(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := onDisk(b)
			var id atomic.Int64
			streams := make([]*stream, max(writers, runtime.GOMAXPROCS(0)))
			for i := range streams {
				streams[i] = newStream(b, s, segment(i+1), 4096)
			}
			before := s.Counters()
			b.ResetTimer()
			b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
			b.SetBytes(4096)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				st := streams[id.Add(1)-1]
				refs := []frame.ShardRef{st.a.Ref}
				for pb.Next() {
					if err := s.Append(*st.next()); err != nil {
						b.Error(err)
					}
					if err := s.Sync(5, s.Incarnation(), refs); err != nil {
						b.Error(err)
					}
				}
			})
			after := s.Counters()
			b.ReportMetric(float64(after.Fsyncs-before.Fsyncs)/float64(b.N), "fsyncs/op")
			b.ReportMetric(float64(after.DataBytes+after.LogBytes+after.IndexBytes-before.DataBytes-before.LogBytes-before.IndexBytes)/float64(b.N), "disk-B/op")
		})
	}
}

func BenchmarkAppend1M(b *testing.B) {
	s := onDisk(b)
	st := newStream(b, s, 1, 1<<20)
	id := layout.SegmentID(1)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if st.h.Offset+1<<20 > st.length {
			ok(b, s.Delete(st.a.Ref))
			id++
			st = newStream(b, s, id, 1<<20)
		}
		ok(b, s.Append(*st.next()))
		if i%16 == 15 {
			ok(b, s.Sync(5, s.Incarnation(), []frame.ShardRef{st.a.Ref}))
		}
	}
}

func BenchmarkRead4K(b *testing.B) {
	const units = 4096
	for _, state := range []string{"log", "finalized"} {
		b.Run(state, func(b *testing.B) {
			s := onDisk(b)
			st := newStream(b, s, 1, 4096)
			var seal stripe.ShardSeal
			for range units {
				a := st.next()
				h, _, err := stripe.Decode(a.Header)
				ok(b, err)
				seal.Add(h)
				ok(b, s.Append(*a))
			}
			ok(b, s.Sync(5, s.Incarnation(), []frame.ShardRef{st.a.Ref}))
			if state == "finalized" {
				ok(b, s.Finalize(st.a.Ref, units, seal))
			}
			var dst [4096]byte
			crcs := make([]uint32, 0, 4)
			ranges := make([]frame.ReadRange, 1)
			b.SetBytes(4096)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				ranges[0] = frame.ReadRange{Offset: layout.ShardOffset(i*7919%units) * 4096, Length: 4096}
				if _, err := s.Read(st.a.Ref, ranges, dst[:]); err != nil {
					b.Fatal(err)
				}
				if state == "finalized" {
					if _, err := s.CRCs(st.a.Ref, ranges, crcs); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func TestHotPathsAllocateLittle(t *testing.T) {
	s := onDisk(t)
	st := newStream(t, s, 1, 4096)
	for range 64 { // warm the pools
		ok(t, s.Append(*st.next()))
	}
	refs := []frame.ShardRef{st.a.Ref}
	ok(t, s.Sync(5, s.Incarnation(), refs))
	atMost(t, "a small append", 6, func() {
		if err := s.Append(*st.next()); err != nil {
			t.Error(err)
		}
	})
	ok(t, s.Sync(5, s.Incarnation(), refs))
	dst, crcs := make([]byte, 4096), make([]uint32, 0, 4)
	ranges := []frame.ReadRange{{Offset: 8192, Length: 4096}}
	atMost(t, "a read from the log", 0, func() {
		if _, err := s.Read(st.a.Ref, ranges, dst); err != nil {
			t.Error(err)
		}
	})
	_, err := s.Fence(st.a.Ref, 6)
	ok(t, err)
	own, _, _, err := s.sumUp(st.a.Ref.ShardKey, st.h.Seq)
	ok(t, err)
	ok(t, s.Finalize(st.a.Ref, st.h.Seq, own))
	atMost(t, "a read of a finalized shard", 0, func() {
		if _, err := s.Read(st.a.Ref, ranges, dst); err != nil {
			t.Error(err)
		}
	})
	atMost(t, "checksums of a finalized shard", 0, func() {
		if _, err := s.CRCs(st.a.Ref, ranges, crcs); err != nil {
			t.Error(err)
		}
	})
}

func atMost(t *testing.T, what string, most float64, call func()) {
	t.Helper()
	if got := testing.AllocsPerRun(100, call); got > most {
		t.Errorf("%s allocates %v times, at most %v are meant to be", what, got, most)
	}
}

func TestShardAtRestTakesAtMost128Bytes(t *testing.T) {
	const shards = 100_000
	before := heap()
	table := newTable()
	for i := range shards {
		rec := format.Shard{Key: layout.ShardKey{Segment: layout.SegmentID(i + 1), Shard: 2}, Generation: 1, State: format.ShardFinalized,
			Geometry: testGeometry, Length: 1 << 20}
		table.insert(rowOf(&rec))
	}
	per := (heap() - before) / shards
	t.Logf("%d bytes a shard", per)
	if per > 128 {
		t.Fatalf("a shard at rest takes %d bytes, at most 128 are allowed", per)
	}
	runtime.KeepAlive(table)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
