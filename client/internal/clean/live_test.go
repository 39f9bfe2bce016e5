package clean

import (
	"slices"
	"testing"

	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

func live(start layout.BlockNumber, n int) Live {
	l := Live{Extent: extent.Extent{Range: layout.Range{Start: start, Count: layout.BlockCount(n)}, Place: extent.Place{Segment: 1, Index: uint32(start)}}}
	for i := range n {
		l.Sums = append(l.Sums, uint32(start)+uint32(i))
	}
	return l
}

// TestBatchesKeepOrderSumsAndPlaces takes a list apart and puts it together again.
func TestBatchesKeepOrderSumsAndPlaces(t *testing.T) {
	for most := layout.BlockCount(1); most < 20; most++ {
		var got []layout.BlockNumber
		for rest := []Live{live(3, 5), live(40, 1), live(50, 9)}; len(rest) > 0; {
			var batch []Live
			var blocks layout.BlockCount
			if batch, blocks, rest = Batch(rest, most); blocks == 0 || blocks > most {
				t.Fatalf("a batch of %d blocks, at most %d", blocks, most)
			}
			for _, e := range batch {
				if len(e.Sums) != int(e.Count) || e.Sums[0] != uint32(e.Start) || e.Place.Index != uint32(e.Start) {
					t.Fatalf("at most %d: %+v", most, e)
				}
				blocks -= e.Count
				for i := range e.Count {
					got = append(got, e.Start+layout.BlockNumber(i))
				}
			}
			if blocks != 0 {
				t.Fatalf("at most %d: counted wrong by %d", most, blocks)
			}
		}
		if want := []layout.BlockNumber{3, 4, 5, 6, 7, 40, 50, 51, 52, 53, 54, 55, 56, 57, 58}; !slices.Equal(got, want) {
			t.Fatalf("at most %d: %v", most, got)
		}
	}
}

func TestABatchHasBoundedRanges(t *testing.T) {
	var list []Live
	for i := range batchRanges + 1 {
		list = append(list, live(layout.BlockNumber(2*i), 1))
	}
	if batch, _, rest := Batch(list, 1<<20); len(batch) != batchRanges || len(rest) != 1 {
		t.Errorf("%d ranges, %d left", len(batch), len(rest))
	}
}

func TestBytesThatDoNotMatchAreRefused(t *testing.T) {
	data := make([]byte, 2*layout.BlockSize)
	data[layout.BlockSize] = 1
	l := live(7, 2)
	l.Sums[0], l.Sums[1] = stripe.BlockCRC(data[:layout.BlockSize]), stripe.BlockCRC(data[layout.BlockSize:])
	if err := Verify([]Live{l}, data); err != nil {
		t.Error(err)
	}
	data[2*layout.BlockSize-1]++
	if err := Verify([]Live{l}, data); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("a wrong last byte: %v", err)
	}
}

// TestWithoutEqualsBlockByBlock compares with a set of blocks.
func TestWithoutEqualsBlockByBlock(t *testing.T) {
	list := []layout.Range{{Start: 2, Count: 3}, {Start: 8, Count: 4}}
	for from := range layout.BlockNumber(14) {
		for n := range layout.BlockCount(14) {
			out := layout.Range{Start: from, Count: n}
			left := map[layout.BlockNumber]bool{}
			for _, r := range Without(list, out) {
				for b := r.Start; b < r.End(); b++ {
					left[b] = true
				}
			}
			for b := range layout.BlockNumber(16) {
				was := b >= 2 && b < 5 || b >= 8 && b < 12
				if want := was && !(b >= from && b < out.End()); left[b] != want {
					t.Fatalf("without %+v: block %d is left: %v", out, b, left[b])
				}
			}
		}
	}
}
