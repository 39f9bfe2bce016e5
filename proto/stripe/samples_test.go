package stripe

import (
	"strake/internal/layout"
)

// samples are headers of every shape that writers make: full, narrow, without
// payload, moved to a narrower segment, relocated, of the map.
func samples() map[string]*Header {
	full := &Header{Cell: 0xce11, Volume: 7, Segment: 9, Shard: 1, Geometry: layout.Geometry{K: 4, M: 2}, Epoch: 3, Seq: 17, Flushed: 12,
		Offset: 1 << 20, Shape: layout.Shape{Unit: 8192, Data: 0b1111}, Blocks: 7,
		Ranges: []Range{{100, 5, Write}, {1 << 30, 2, Write}, {9, 4, Discard}, {50, 1, Zero}}}
	narrow := &Header{Cell: 0xce11, Volume: 7, Segment: 9, Shard: 4, Geometry: layout.Geometry{K: 4, M: 2}, Epoch: 3, Seq: 18, Flushed: 17,
		Offset: 2 << 20, Shape: layout.Shape{Unit: 4096, Data: 0b0100}, Blocks: 1, Ranges: []Range{{3, 1, Write}}}
	empty := &Header{Cell: 0xce11, Volume: 7, Segment: 9, Shard: 3, Geometry: layout.Geometry{K: 4, M: 2}, Epoch: 3, Seq: 19,
		Shape: layout.Shape{Data: 0b1000}, Ranges: []Range{{0, 1000, Discard}}}
	moved := &Header{Cell: 0xce11, Volume: 7, Segment: 10, Shard: 2, Geometry: layout.Geometry{K: 1, M: 4}, Epoch: 3, Seq: 17,
		Flags: Relocation, Shape: layout.Shape{Unit: 3 << 12, Data: 1}, Blocks: 3, Ranges: []Range{{100, 3, Write}}}
	pages := &Header{Cell: 0xce11, Volume: 7, Segment: 11, Shard: 0, Geometry: layout.Geometry{K: 2, M: 1}, Epoch: 4, Seq: 2, Flushed: 400,
		Flags: MapPage, Shape: layout.Shape{Unit: 4096, Data: 0b01}, Blocks: 1}
	all := map[string]*Header{"full": full, "narrow": narrow, "empty": empty, "moved": moved, "map-page": pages}
	for _, h := range all {
		h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
		for i := range h.CRCs {
			h.CRCs[i] = 0x9e3779b9 * uint32(i+1)
		}
		if h.Ranges == nil {
			h.Ranges = []Range{}
		}
	}
	return all
}
