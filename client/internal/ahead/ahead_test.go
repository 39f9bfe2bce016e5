package ahead

import (
	"math/rand/v2"
	"testing"

	"strake/internal/layout"
)

// TestRandomReadsFetchNothing, of any size that is usual, in any class.
func TestRandomReadsFetchNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, blocks := range []layout.BlockCount{1, 32} {
		for class := range layout.Class(5) {
			var d Detector
			var fetched layout.BlockCount
			const size, reads = layout.BlockNumber(1 << 24), 100_000
			for range reads {
				at := layout.BlockNumber(random.Uint64N(uint64(size)/uint64(blocks))) * layout.BlockNumber(blocks)
				fetched += d.Read(layout.Range{Start: at, Count: blocks}, StartOf(class), 4, size, 0).Count
			}
			if fetched*1000 > reads*blocks {
				t.Errorf("class %v: %d blocks were fetched beside %d reads of %d", class, fetched, reads, blocks)
			}
		}
	}
}

// TestInvariants over walks that mix streams, jumps and overtaking.
func TestInvariants(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var d Detector
		size := layout.BlockNumber(1 << 40) // so that jumps do not meet
		k := 1 + random.IntN(16)
		at, given := layout.BlockNumber(0), layout.BlockNumber(0)
		for range 500 {
			n := layout.BlockCount(1 + random.Uint64N(64))
			if random.IntN(100) == 0 {
				at, given = layout.BlockNumber(random.Uint64N(uint64(size)-1<<20)), 0
			}
			r := layout.Range{Start: at, Count: n}
			at = r.End()
			got := d.Read(r, StartOf(layout.ClassTraining), k, size, 0)
			if got.Count == 0 {
				continue
			}
			if got.Start < r.End() || got.End() > size || got.Count > Most || got.End()-r.End() > layout.BlockNumber(Most) {
				t.Fatalf("seed %d: read %v of %d has %v fetched", seed, r, size, got)
			}
			if given > r.End() && got.Start < given {
				t.Fatalf("seed %d: read %v has %v fetched again, given up to %d", seed, r, got, given)
			}
			given = got.End()
		}
	}
}

// TestNothingIsAllocated (I3).
func TestNothingIsAllocated(t *testing.T) {
	var d Detector
	at := layout.BlockNumber(0)
	if n := testing.AllocsPerRun(1000, func() {
		d.Read(layout.Range{Start: at, Count: 8}, StartOf(layout.ClassTraining), 4, 1<<30, 0)
		at += 8
	}); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
}
