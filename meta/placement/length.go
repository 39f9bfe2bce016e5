package placement

import "strake/internal/layout"

// ShardLength is the shard length of a volume's next segment: 4 MiB for the
// first, twice as much for each that the volume has, up to the cell's. So a
// small volume reserves little, and a large one has few segments. A stripe that
// moves may need more, atLeast, whatever the cell's length.
func ShardLength(segments uint64, cell, atLeast layout.ShardOffset) layout.ShardOffset {
	n := min(layout.ShardOffset(layout.FirstShardLength), cell)
	for ; segments > 0 && n < cell; segments-- {
		n = min(2*n, cell)
	}
	whole := (atLeast + layout.BlockSize - 1) / layout.BlockSize * layout.BlockSize
	return min(max(n, whole), layout.MaxShardLength)
}
