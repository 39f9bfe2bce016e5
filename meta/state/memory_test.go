package state

import (
	"fmt"
	"math/rand"
	"runtime"
	"testing"

	"strake/internal/layout"
)

// bytesPerSegment is the budget: 1.5 GiB for 4 Mi segments.
const bytesPerSegment = 375

// grow gives a cell with n finalized 4+2 segments, made by the commands that
// make them in life.
func grow(t testing.TB, servers, volumes, n int) *State {
	t.Helper()
	s, rnd, index := New(), rand.New(rand.NewSource(1)), uint64(0)
	apply := func(cmd Command) Result {
		index++
		r := s.Apply(index, cmd)
		if r.Err != nil {
			t.Fatalf("%T: %v", cmd, r.Err)
		}
		return r
	}
	apply(FormCell{Cell: 1})
	for i := range servers {
		apply(RegisterServer{UUID: layout.UUID{1, byte(i), byte(i >> 8)}, Devices: []DeviceReport{{UUID: layout.UUID{2, byte(i), byte(i >> 8)}, Total: 1 << 44, Incarnation: 1}}})
	}
	session := apply(OpenSession{ID: 1 << 40}).Session
	epochs := map[layout.VolumeID]layout.Epoch{}
	for i := range volumes {
		id := apply(CreateVolume{ID: 1<<41 + CommandID(i), Name: fmt.Sprintf("v%d", i), SizeBytes: 1 << 30, Geometry: layout.Geometry{K: 4, M: 2}}).Volume
		epochs[id] = apply(AcquireLease{ID: 1<<42 + CommandID(i), Session: session, Volume: VolumeRef{ID: id}}).Epoch
	}
	for done := 0; done < n; {
		v, _ := s.t.volumes.Get(layout.VolumeID(1 + rnd.Intn(volumes)))
		c := AllocateSegments{ID: CommandID(rnd.Uint64() | 1<<63), Session: session, Volume: v.ID, Epoch: v.Epoch, Count: 8}
		for range c.Count {
			p := PlacedSegment{Geometry: v.Geometry, ShardLength: 64 << 20}
			for _, d := range distinct(rnd, servers, 6) {
				p.Devices = append(p.Devices, layout.DeviceID(1+d))
			}
			c.Placed = append(c.Placed, p)
		}
		ids := apply(c).Segments
		apply(OpenSegments{Segments: ids})
		seal := SealSegments{Volume: v.ID, Epoch: v.Epoch}
		for i, id := range ids {
			seg := s.t.segment(id)
			seal.Seals = append(seal.Seals, possibleSeal(rnd, seg, v.LastSeq+1+layout.Seq(i)*300, 300))
		}
		apply(seal)
		apply(MarkFinalized{Segments: ids})
		done += len(ids)
	}
	return s
}

func distinct(rnd *rand.Rand, n, k int) (out []int) {
	for len(out) < k {
		d := rnd.Intn(n)
		fresh := true
		for _, o := range out {
			fresh = fresh && o != d
		}
		if fresh {
			out = append(out, d)
		}
	}
	return out
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestASegmentCostsLessMemoryThanItsBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const n = 1 << 14
	for _, servers := range []int{6, 1000} {
		base := grow(t, servers, 64, 8)
		before := heap()
		s := grow(t, servers, 64, n)
		each := float64(heap()-before) / n
		runtime.KeepAlive(s)
		runtime.KeepAlive(base)
		t.Logf("%d servers: %.0f bytes per finalized 4+2 segment", servers, each)
		if each > bytesPerSegment {
			t.Errorf("%d servers: %.0f bytes per segment, the budget is %d", servers, each, bytesPerSegment)
		}
	}
}

func BenchmarkAllocateOpenSealFinalize(b *testing.B) {
	b.ReportAllocs()
	grow(b, 100, 64, b.N)
}
