package client

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"strake/client/internal/content"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// ragged is a cell that holds a volume of blocks written one by one in random order:
// block b's checksum is b+1. Now and then it looks at how much memory is in use.
type ragged struct {
	perSegment int
	order      []uint32 // the blocks, in the order of their stripes

	mu    sync.Mutex
	reads int
	most  uint64 // bytes of live heap
}

var oneBlock = layout.Shape{Unit: layout.BlockSize, Data: 1}

func (r *ragged) locate(_ context.Context, ids []layout.SegmentID) (list []*pb.Segment, err error) {
	for _, id := range ids {
		list = append(list, &pb.Segment{Id: uint64(id), Seal: &pb.Seal{Count: uint32(r.perSegment)}})
	}
	return list, nil
}

func (r *ragged) stripesIn(_ context.Context, s *pb.Segment) (map[layout.ShardOffset]*stripe.Header, error) {
	headers := map[layout.ShardOffset]*stripe.Header{}
	for i, block := range r.order[int(s.Id-1)*r.perSegment:][:r.perSegment] {
		h := &stripe.Header{Segment: layout.SegmentID(s.Id), Geometry: layout.Geometry{K: 1, M: 2}, Offset: layout.ShardOffset(i * layout.BlockSize),
			Shape: oneBlock, Blocks: 1, Ranges: []stripe.Range{{Start: layout.BlockNumber(block), Count: 1, Kind: stripe.Write}},
			CRCs: []uint32{block + 1, 0, 0}}
		headers[h.Offset] = h
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads++; r.reads%32 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		r.most = max(r.most, m.HeapAlloc)
	}
	return headers, nil
}

// extents maps every block.
func (r *ragged) extents() []extent.Extent {
	list := make([]extent.Extent, len(r.order))
	for i, block := range r.order {
		place := extent.Place{Segment: layout.SegmentID(i/r.perSegment + 1), Offset: layout.ShardOffset(i % r.perSegment * layout.BlockSize), Shape: oneBlock}
		list[block] = extent.Extent{Range: layout.Range{Start: layout.BlockNumber(block), Count: 1}, Place: place}
	}
	return list
}

// TestChecksumsOfARaggedVolumeTakeLittleMemory gathers those of a volume whose every
// window has blocks in every segment. All of its headers together take some 200 MiB.
func TestChecksumsOfARaggedVolumeTakeLittleMemory(t *testing.T) {
	const segments, perSegment, zeros = 256, 2048, 1000
	r := &ragged{perSegment: perSegment, order: make([]uint32, segments*perSegment)}
	for i := range r.order {
		r.order[i] = uint32(i)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	rnd.Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	list := r.extents()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	s := newSummer(r)
	sums := make([]uint32, len(list)+zeros)
	s.add(list, 0, sums)
	s.add([]extent.Extent{{Range: layout.Range{Start: layout.BlockNumber(len(list)), Count: zeros}, Zero: true}}, 0, sums)
	if err := s.fill(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	for i, sum := range sums {
		if want := uint32(i) + 1; i < len(list) && sum != want || i >= len(list) && sum != content.Zero {
			t.Fatalf("block %d has checksum %d", i, sum)
		}
	}
	if used := r.most - min(r.most, before); used > 96<<20 || r.most == 0 {
		t.Errorf("%d MiB were in use beyond the map's, looked at in %d reads", used>>20, r.reads)
	}
	if r.reads != segments {
		t.Errorf("%d segments were read %d times", segments, r.reads)
	}
}

func TestAWindowOfChecksumsEndsInTime(t *testing.T) {
	s := newSummer(&ragged{})
	if got := s.step(0, 0, 10); got.Count != 10 {
		t.Errorf("of ten blocks: %v", got)
	}
	if got := s.step(7, sumWindow, 1<<40); got.Start != sumWindow || got.Count != 7 {
		t.Errorf("at the window's end: %v", got)
	}
	s.pieces = make([]piece, maxPieces)
	if got := s.step(0, 10, 1<<40); got.Count != 0 {
		t.Errorf("of a window with so many pieces: %v", got)
	}
}

func TestAStripeThatNoHeaderTellsOfIsCorrupt(t *testing.T) {
	r := &ragged{perSegment: 4, order: []uint32{0, 1, 2, 3}}
	list := r.extents()
	for name, spoil := range map[string]func(e *extent.Extent){
		"offset": func(e *extent.Extent) { e.Place.Offset += 1 << 20 },
		"index":  func(e *extent.Extent) { e.Place.Index = 1 },
		"shape":  func(e *extent.Extent) { e.Place.Shape.Data = 2 },
	} {
		bad := slices.Clone(list)
		spoil(&bad[2])
		s := newSummer(r)
		s.add(bad, 0, make([]uint32, 4))
		if err := s.fill(t.Context(), make([]uint32, 4)); errs.KindOf(err) != errs.Corrupt {
			t.Errorf("another %s: %v", name, err)
		}
	}
}
