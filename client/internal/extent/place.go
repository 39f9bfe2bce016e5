package extent

import (
	"strake/internal/layout"
)

// Place is where an extent's first block lies: payload block Index of the
// stripe at Offset of Segment. Shape.Locate gives shard and block from there;
// the geometry is the segment's and comes with its placement.
type Place struct {
	Segment layout.SegmentID
	Offset  layout.ShardOffset
	Shape   layout.Shape
	Index   uint32
}

// Extent is a run of blocks that lie one after another in one stripe's payload.
type Extent struct {
	layout.Range
	Place Place // the zero Place when Zero
	Zero  bool  // reads as zeros: never written, discarded or zeroed
}

// Part gives n blocks of an extent from block i on.
func (e Extent) Part(i, n layout.BlockCount) Extent {
	e.Start += layout.BlockNumber(i)
	e.Count = n
	if !e.Zero {
		e.Place.Index += uint32(i)
	}
	return e
}

// PageRef names one page of the map and where it lies: payload blocks
// [Index, Index+Blocks) of the map stripe at Offset of Segment. It is a plain
// value, comparable, and good as a map key. The shell fills Segment to Index
// when it places a page, and passes all of it back to Install as it came.
type PageRef struct {
	Segment layout.SegmentID
	Offset  layout.ShardOffset
	Shape   layout.Shape
	Index   uint32
	Blocks  uint32 // 1 to MaxPageBlocks
	CRC     uint32 // CRC32C of the page's Blocks x 4096 bytes
	Kind    Kind   // what the page must turn out to be
	Level   uint8  // 0: leaf
	First   uint64 // the first key of the page's part of the key space
}

// Bytes is the page's length.
func (r PageRef) Bytes() int { return int(r.Blocks) * layout.BlockSize }

// Kind says which tree a page belongs to. Numbers are frozen.
type Kind uint8

const (
	KindRoot   Kind = 1 // the root page: both trees' top nodes and the table of map segments
	KindExtent Kind = 2 // blocks to places
	KindLive   Kind = 3 // data segments to live blocks
)

// MaxPageBlocks bounds a page, in blocks: 64 KiB.
const MaxPageBlocks = 16

// Root is a checkpoint's entry point as the metadata service keeps it, opaque
// there; at most MaxRoot bytes.
type Root []byte

// MaxRoot bounds an encoded root, in bytes.
const MaxRoot = 256
