package extent

import (
	"math"

	"strake/internal/layout"
)

// run is an extent in memory: 32 bytes without a pointer.
type run struct {
	start     uint64
	segment   uint64 // 0: reads as zeros
	count     uint32
	offset    uint32 // blocks
	unit      uint16 // blocks
	mask      uint16
	index     uint16
	unsettled bool // what the base holds beneath is not yet subtracted (only in layers)
}

func (r run) key() uint64 { return r.start }
func (r run) end() uint64 { return r.start + uint64(r.count) }

// clip is the part of r within [lo, hi), which must share a block with it.
func (r run) clip(lo, hi uint64) run {
	lo, hi = max(lo, r.start), min(hi, r.end())
	if r.segment != 0 {
		r.index += uint16(lo - r.start)
	}
	r.start, r.count = lo, uint32(hi-lo)
	return r
}

// sameStripe tells whether both lie in one stripe. A stripe with payload has its
// offset in a segment for itself.
func (r run) sameStripe(o run) bool { return r.segment == o.segment && r.offset == o.offset }

// joins tells whether o goes on where r ends, in the volume and in the stripe.
func (r run) joins(o run) bool {
	if r.end() != o.start || r.unsettled != o.unsettled || r.segment != o.segment {
		return false
	}
	if r.segment == 0 {
		return uint64(r.count)+uint64(o.count) <= math.MaxUint32
	}
	return r.offset == o.offset && uint32(r.index)+r.count == uint32(o.index)
}

// push appends r to list, as part of the last run where it joins.
func push(list []run, r run) []run {
	if n := len(list); n > 0 && list[n-1].joins(r) {
		list[n-1].count += r.count
		return list
	}
	return append(list, r)
}

func (r run) extent() Extent {
	e := Extent{Range: layout.Range{Start: layout.BlockNumber(r.start), Count: layout.BlockCount(r.count)}, Zero: r.segment == 0}
	if !e.Zero {
		e.Place = Place{layout.SegmentID(r.segment), layout.ShardOffset(r.offset) * layout.BlockSize,
			layout.Shape{Unit: uint32(r.unit) * layout.BlockSize, Data: layout.Mask(r.mask)}, uint32(r.index)}
	}
	return e
}

// volumeEnd is the first block past the largest volume.
const volumeEnd = layout.MaxVolumeBytes / layout.BlockSize
