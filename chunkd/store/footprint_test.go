package store

import (
	"sync"
	"testing"

	"strake/chunkd/format"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// BenchmarkOpenHundredThousandShards tells what a device's store takes of memory
// beyond an empty one: bar 64 MiB. What stands for the disk is in memory too, and was
// there before. Run it once: -benchtime 1x.
func BenchmarkOpenHundredThousandShards(b *testing.B) {
	empty := footprint(b, 0)
	for b.Loop() {
		b.ReportMetric(footprint(b, 100_000)-empty, "MiB-above-empty")
	}
}

// footprint is what an open store of so many shards adds to the heap, in MiB.
func footprint(b *testing.B, shards int) float64 {
	fsys := vfs.NewMem(vfs.MemOptions{Capacity: 8 << 30})
	ok(b, Format(fsys, testID))
	s, err := Open(fsys, format.Superblock{}, Options{})
	ok(b, err)
	var creators sync.WaitGroup
	const at = 16
	for i := range at {
		creators.Go(func() {
			for id := i; id < shards; id += at {
				spec := testSpec(layout.SegmentID(id + 1))
				spec.Length = layout.BlockSize
				if err := s.Create(spec); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	creators.Wait()
	ok(b, s.Close())
	s, err = Open(fsys, format.Superblock{}, Options{}) // makes tables of the index's log, which takes less room
	ok(b, err)
	ok(b, s.Close())
	s = nil
	heap() // pools drop what they keep with the second collection
	before := heap()
	s, err = Open(fsys, format.Superblock{}, Options{})
	ok(b, err)
	got := 0
	s.Each(func(Stat) bool { got++; return true })
	if got != shards {
		b.Fatalf("%d shards, want %d", got, shards)
	}
	added := heap() - before
	ok(b, s.Close())
	return float64(added) / (1 << 20)
}
