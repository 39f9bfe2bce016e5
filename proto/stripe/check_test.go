package stripe

import (
	"errors"
	"math"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

func TestCheckRefusesWhatDoesNotFit(t *testing.T) {
	cases := map[string]func(*Header){
		"no parity":                  func(h *Header) { h.Geometry.M = 0 },
		"too wide":                   func(h *Header) { h.Geometry.K = layout.MaxData + 1 },
		"unknown flag":               func(h *Header) { h.Flags = 4 },
		"empty mask":                 func(h *Header) { h.Shape.Data = 0 },
		"parity in the mask":         func(h *Header) { h.Shape.Data |= 1 << 4 },
		"unit of half a block":       func(h *Header) { h.Shape.Unit = 2048 },
		"offset below zero":          func(h *Header) { h.Offset = -4096 },
		"offset between blocks":      func(h *Header) { h.Offset = 1 },
		"row past the longest shard": func(h *Header) { h.Offset = layout.MaxShardLength },
		"offset whose end overflows": func(h *Header) { h.Offset = math.MaxInt64 &^ 4095 },
		"no seq":                     func(h *Header) { h.Seq = 0 },
		"flushed at its own seq":     func(h *Header) { h.Flushed = h.Seq },
		"shard takes no part":        func(h *Header) { h.Shard = 6 },
		"shard past the mask":        func(h *Header) { h.Shard = 200 },
		"a checksum too few":         func(h *Header) { h.CRCs = h.CRCs[1:] },
		"a data shard too many":      func(h *Header) { h.Blocks = 1; h.Ranges = []Range{{1, 1, Write}} },
		"more blocks than units":     func(h *Header) { h.Blocks = 9; h.Ranges = []Range{{1, 9, Write}} },
		"ranges of other length":     func(h *Header) { h.Ranges = h.Ranges[:1] },
		"an empty range":             func(h *Header) { h.Ranges[0].Count = 0 },
		"an unknown range kind":      func(h *Header) { h.Ranges[2].Kind = 9 },
		"a range past the volume":    func(h *Header) { h.Ranges[2].Start = layout.MaxVolumeBytes / layout.BlockSize },
		"a range that overflows":     func(h *Header) { h.Ranges[2].Start = math.MaxUint64 },
		"no range":                   func(h *Header) { h.Ranges = nil },
		"a map page with ranges":     func(h *Header) { h.Flags = MapPage },
	}
	for name, spoil := range cases {
		h := samples()["full"]
		spoil(h)
		if err := h.Check(); !errors.Is(err, errs.Corrupt) {
			t.Errorf("%s: got %v, want corrupt", name, err)
		}
	}
}

func TestCheckRefusesHeadersTooLongToDecode(t *testing.T) {
	h := &Header{Geometry: layout.Geometry{K: 2, M: 4}, Seq: 1, Blocks: layout.MaxStripeBlocks,
		Shape: layout.Shape{Unit: (layout.MaxStripeBlocks - 1) * layout.BlockSize, Data: 0b11}}
	for i := range layout.BlockNumber(layout.MaxStripeBlocks) {
		h.Ranges = append(h.Ranges, Range{2 * i, 1, Write})
	}
	for i := range layout.BlockNumber(1024) {
		h.Ranges = append(h.Ranges, Range{2*i + 1, 1, Discard})
	}
	h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
	if err := h.Check(); !errors.Is(err, errs.Corrupt) {
		t.Fatalf("a header of %d bytes, longer than %d: got %v", h.EncodedLen(), MaxLen, err)
	}
}

func TestEveryShapeThatABuilderCutsPassesCheck(t *testing.T) {
	for k := uint8(1); k <= layout.MaxData; k++ {
		for m := uint8(1); m <= layout.MaxParity; m++ {
			for _, n := range []layout.BlockCount{0, 1, 2, 255, 256, 1023, 2047, 4095, 4096} {
				g := layout.Geometry{K: k, M: m}
				h := &Header{Geometry: g, Shape: g.ShapeFor(n, 5), Seq: 5, Blocks: uint32(n), Shard: layout.ShardIndex(k)}
				h.Ranges = []Range{{0, uint32(max(n, 1)), Write}}
				if n == 0 {
					h.Ranges[0].Kind = Discard
				}
				h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
				if err := h.Check(); err != nil {
					t.Errorf("%v, %d blocks: %v", g, n, err)
				}
			}
		}
	}
}

func TestDigestIsTheSameAtEveryParticipant(t *testing.T) {
	a, b := samples()["full"], samples()["full"]
	b.Shard, b.Flushed = 5, 16
	if (Digest{}).Add(a) != (Digest{}).Add(b) {
		t.Error("the digest depends on shard or flushed seq")
	}
	b.CRCs[3]++
	if (Digest{}).Add(a) == (Digest{}).Add(b) {
		t.Error("the digest does not see a checksum")
	}
	s := NewSeal(9, a.Geometry)
	s.Add(a)
	s.Add(samples()["narrow"])
	if s.First != 17 || s.Last != 18 || s.Count != 2 || s.Shards[0].Count != 1 || s.Shards[2].Count != 2 || s.Shards[4].Length != 2<<20+4096 {
		t.Errorf("seal of two stripes: %+v", s)
	}
}
