package clean

import (
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// batchRanges bounds the ranges of one relocation: a header names them all, on every
// participant.
const batchRanges = 1024

// Live is a run of live blocks that is to be relocated, with their checksums as the
// sealed header has them. These go with the blocks: bytes that don't match them are
// never written.
type Live struct {
	extent.Extent
	Sums []uint32
}

func (l Live) part(i, n layout.BlockCount) Live { return Live{l.Part(i, n), l.Sums[i:][:n]} }

// AppendWritten appends what a stripe wrote.
func AppendWritten(list []Live, h *stripe.Header) []Live {
	index := uint32(0)
	for _, r := range h.Ranges {
		if r.Kind != stripe.Write {
			continue
		}
		e := Live{Extent: extent.Extent{Range: layout.Range{Start: r.Start, Count: layout.BlockCount(r.Count)},
			Place: extent.Place{Segment: h.Segment, Offset: h.Offset, Shape: h.Shape, Index: index}}}
		for i := range r.Count {
			shard, block := h.Shape.Locate(layout.BlockCount(index + i))
			e.Sums = append(e.Sums, h.UnitCRCs(shard)[block])
		}
		list, index = append(list, e), index+r.Count
	}
	return list
}

// AppendCurrent appends the parts of what was written that the map still names where
// it was written. need are pages that are missing for it: then the list is of no use.
func AppendCurrent(tree *extent.Map, list, written []Live) (found []Live, need []extent.PageRef) {
	var now []extent.Extent
	for _, e := range written {
		var missing []extent.PageRef
		now, missing = tree.Current(e.Extent, now[:0])
		need = append(need, missing...)
		for _, p := range now {
			list = append(list, e.part(layout.BlockCount(p.Start-e.Start), p.Count))
		}
	}
	return list, need
}

// Batch takes a batch of at most `most` blocks off the front of a list, which it
// changes.
func Batch(list []Live, most layout.BlockCount) (batch []Live, blocks layout.BlockCount, rest []Live) {
	for len(list) > 0 && blocks < most && len(batch) < batchRanges {
		e := list[0]
		n := min(e.Count, most-blocks)
		batch, blocks = append(batch, e.part(0, n)), blocks+n
		if n == e.Count {
			list = list[1:]
			continue
		}
		list[0] = e.part(n, e.Count-n)
	}
	return batch, blocks, list
}

// Verify compares a batch's bytes, one block after another, with their checksums.
// Error: Corrupt.
func Verify(batch []Live, data []byte) error {
	for _, e := range batch {
		for i, want := range e.Sums {
			if got := stripe.BlockCRC(data[:layout.BlockSize]); got != want {
				return errs.New(errs.Corrupt, "", "block %d has checksum %08x, the sealed header says %08x", int(e.Start)+i, got, want)
			}
			data = data[layout.BlockSize:]
		}
	}
	return nil
}

// Without takes a range out of ranges.
func Without(list []layout.Range, out layout.Range) (left []layout.Range) {
	for _, r := range list {
		if before := min(r.End(), out.Start); before > r.Start {
			left = append(left, layout.Range{Start: r.Start, Count: layout.BlockCount(before - r.Start)})
		}
		if after := max(r.Start, out.End()); after < r.End() {
			left = append(left, layout.Range{Start: after, Count: layout.BlockCount(r.End() - after)})
		}
	}
	return left
}
