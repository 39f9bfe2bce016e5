package stripe

import (
	"strake/internal/layout"
)

// Flags of a header.
type Flags uint8

const (
	// Relocation marks a stripe that the cleaner wrote: it maps a block only
	// where the block's older place is still current.
	Relocation Flags = 1
	// MapPage marks a stripe that holds pages of the extent map.
	MapPage Flags = 2
)

// RangeKind says what a stripe does to a range of blocks.
type RangeKind uint8

const (
	// Write: the range's blocks are in the payload.
	Write RangeKind = 1
	// Discard: the range holds nothing any more and reads as zeros.
	Discard RangeKind = 2
	// Zero: the range reads as zeros and counts as written.
	Zero RangeKind = 3
)

// Range is a run of blocks and what the stripe does to it.
type Range struct {
	Start layout.BlockNumber
	Count uint32 // at least 1
	Kind  RangeKind
}

// Header describes one stripe. All of it but Shard is the same at every
// participant.
type Header struct {
	Cell     layout.CellID
	Volume   layout.VolumeID
	Segment  layout.SegmentID
	Shard    layout.ShardIndex // whose copy this is
	Geometry layout.Geometry
	Flags    Flags
	Epoch    layout.Epoch
	Seq      layout.Seq
	Flushed  layout.Seq
	Offset   layout.ShardOffset
	Shape    layout.Shape
	Blocks   uint32   // payload blocks
	Ranges   []Range  // in payload order
	CRCs     []uint32 // see the package comment
}

// Participants are the shards that store this header.
func (h *Header) Participants() layout.Mask { return h.Geometry.Participants(h.Shape) }

// UnitCRCs gives the block checksums of one participant's unit, nil when the
// shard takes no part.
func (h *Header) UnitCRCs(s layout.ShardIndex) []uint32 {
	p := h.Participants()
	if !p.Has(s) {
		return nil
	}
	n := int(h.Shape.UnitBlocks())
	i := p.Rank(s) * n
	return h.CRCs[i : i+n]
}

// End is the first offset after the stripe's row.
func (h *Header) End() layout.ShardOffset {
	return h.Offset + layout.ShardOffset(h.Shape.Unit)
}
