package extent

import "strake/internal/layout"

// SegmentLive is how many blocks of a segment the map names.
type SegmentLive struct {
	Segment layout.SegmentID
	Blocks  uint64
}

// Live is the number of live blocks of a data segment: exact when Unsettled is
// 0, else an upper bound.
func (m *Map) Live(s layout.SegmentID) (blocks uint64, need []PageRef) { return 0, nil }

// Segments appends up to most data segments with id > after, in id order, to dst.
// Segments without a live block are listed until Forget.
func (m *Map) Segments(after layout.SegmentID, most int, dst []SegmentLive) ([]SegmentLive, []PageRef) {
	return dst, nil
}

// MapSegments are the segments that hold the committed root's pages, by id.
// Blocks counts their live page blocks.
func (m *Map) MapSegments() (segments []SegmentLive, need []PageRef) { return nil, nil }

// Forget drops segments without a live block from the tables: the metadata
// service retired them.
func (m *Map) Forget(segments ...layout.SegmentID) {}

// Vacate makes the next Freeze move all pages out of these map segments.
func (m *Map) Vacate(mapSegments ...layout.SegmentID) {}

// Unsettled is how many overwritten blocks wait for their old place to be
// looked up. It grows when headers are applied while pages are not loaded.
func (m *Map) Unsettled() layout.BlockCount { return 0 }

// Settle looks up old places, in block order. It returns at most most missing
// pages: load, Install, repeat until it returns none.
func (m *Map) Settle(most int) []PageRef { return nil }

// Check verifies the numbered invariants over everything that is loaded; for tests.
func (m *Map) Check() error { return nil }
