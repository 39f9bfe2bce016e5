package extent

import (
	"strake/internal/layout"
)

// Columns. A leaf of extents and an inner page share those of a place.
const (
	colStart   = 0 // extent: first block
	colFirst   = 0 // inner: first key of the child's part
	colCount   = 1 // extent: blocks
	colBlocks  = 1 // inner: the child's page blocks
	colSegment = 2
	colOffset  = 3 // blocks
	colUnit    = 4 // blocks
	colMask    = 5
	colIndex   = 6
	colCRC     = 7 // inner

	colID   = 0 // live: segment
	colLive = 1 // live: blocks

	extentCols = 7
	innerCols  = 8
	liveCols   = 2
)

// maxLevel bounds the height of a tree; with hundreds of children per page
// three levels hold a hundred million extents.
const maxLevel = 12

// node is one page's rows: of a leaf, or of an inner page.
type node struct {
	table
	kind  Kind
	level uint8
}

func (n *node) columns() int { return columns(n.kind, n.level) }

func columns(kind Kind, level uint8) int {
	switch {
	case level > 0:
		return innerCols
	case kind == KindLive:
		return liveCols
	}
	return extentCols
}

// child gives the ref in row i of an inner node.
func (n *node) child(i int) PageRef {
	return refOf(n.row(i, innerCols), n.kind, n.level-1)
}

func refOf(r row, kind Kind, level uint8) PageRef {
	return PageRef{
		Segment: layout.SegmentID(r[colSegment]), Offset: layout.ShardOffset(r[colOffset]) * layout.BlockSize,
		Shape: layout.Shape{Unit: uint32(r[colUnit]) * layout.BlockSize, Data: layout.Mask(r[colMask])},
		Index: uint32(r[colIndex]), Blocks: uint32(r[colBlocks]), CRC: uint32(r[colCRC]),
		Kind: kind, Level: level, First: r[colFirst],
	}
}

func (r PageRef) row() row {
	return row{colFirst: r.First, colBlocks: uint64(r.Blocks), colSegment: uint64(r.Segment),
		colOffset: uint64(r.Offset) / layout.BlockSize, colUnit: uint64(r.Shape.UnitBlocks()),
		colMask: uint64(r.Shape.Data), colIndex: uint64(r.Index), colCRC: uint64(r.CRC)}
}

// run gives row i of a leaf of extents.
func (n *node) run(i int) run {
	return run{start: n.get(i, colStart), count: uint32(n.get(i, colCount)), segment: n.get(i, colSegment),
		offset: uint32(n.get(i, colOffset)), unit: uint16(n.get(i, colUnit)),
		mask: uint16(n.get(i, colMask)), index: uint16(n.get(i, colIndex))}
}

func (r run) row() row {
	return row{colStart: r.start, colCount: uint64(r.count), colSegment: r.segment, colOffset: uint64(r.offset),
		colUnit: uint64(r.unit), colMask: uint64(r.mask), colIndex: uint64(r.index)}
}

// check verifies every row, that keys ascend from first on, and that the
// encoding is canonical. Nothing reads a node that was not checked.
func (n *node) check(first uint64) error {
	var s span
	next, cols := first, n.columns()
	for i := range n.rows {
		r := n.row(i, cols)
		s.add(&r)
		if r[0] < next {
			return bad("row %d has key %d, below %d", i, r[0], next)
		}
		end, ok := n.rowEnd(r)
		if !ok {
			return bad("row %d: %v", i, r)
		}
		next = end
	}
	if !n.canonical(&s, cols) {
		return bad("not the canonical encoding")
	}
	return nil
}

// rowEnd checks one row by itself and gives the least key that may follow.
func (n *node) rowEnd(r row) (next uint64, ok bool) {
	if n.level == 0 && n.kind == KindLive {
		return r[colID] + 1, r[colID] != 0 && r[colID]+1 != 0 && r[colLive] <= maxSegmentBlocks
	}
	units := layout.Mask(r[colMask]).Count()
	ok = r[colSegment] != 0 && r[colMask] != 0 && r[colMask] < 1<<layout.MaxData &&
		r[colUnit] >= 1 && r[colUnit] <= layout.MaxStripeBlocks &&
		r[colOffset] < layout.MaxShardLength/layout.BlockSize && r[colIndex] < layout.MaxStripeBlocks &&
		r[1] >= 1 && r[1] <= layout.MaxStripeBlocks && r[colIndex]+r[1] <= r[colUnit]*uint64(units)
	if n.level > 0 {
		return r[colFirst] + 1, ok && r[colBlocks] <= MaxPageBlocks && r[colFirst]+1 != 0 && r[colCRC] < 1<<32
	}
	return r[colStart] + r[colCount], ok && r[colStart] < volumeEnd && r[colStart]+r[colCount] <= volumeEnd
}

// maxSegmentBlocks bounds a segment's live blocks.
const maxSegmentBlocks = layout.MaxData * layout.MaxShardLength / layout.BlockSize
