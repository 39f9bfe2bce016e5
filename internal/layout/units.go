package layout

// Block and byte measures. A volume's address space is counted in blocks, a
// shard in bytes.
type (
	// BlockNumber is a block's index in a volume.
	BlockNumber uint64
	// BlockCount counts blocks.
	BlockCount uint64
	// ShardOffset is a byte offset in a shard; a multiple of BlockSize.
	ShardOffset int64
)

const (
	// BlockSize is the unit of addressing and of checksums, in bytes.
	BlockSize = 4096
	// MaxUnit is the largest unit the builder cuts, in bytes. A stripe that
	// is appended again to a narrower segment may have a larger one.
	MaxUnit = 1 << 20
	// MaxData and MaxParity bound a geometry; MinData and MinParity are 1.
	MaxData   = 16
	MaxParity = 4
	// MaxShards is the widest segment.
	MaxShards = MaxData + MaxParity
	// MaxStripePayload is the most user bytes one stripe carries.
	MaxStripePayload = MaxData * MaxUnit
	// MaxStripeBlocks is MaxStripePayload in blocks.
	MaxStripeBlocks = MaxStripePayload / BlockSize

	// FirstShardLength is the shard length of a volume's first segment; each
	// next one is twice the last, up to the cell's shard length.
	FirstShardLength = 4 << 20
	// DefaultShardLength and MaxShardLength bound the cell's shard length.
	DefaultShardLength = 64 << 20
	MaxShardLength     = 1 << 30

	// MinVolumeBytes and MaxVolumeBytes bound a volume's size (1 EiB).
	MinVolumeBytes = BlockSize
	MaxVolumeBytes = 1 << 60
)

// Blocks gives the number of blocks that n bytes need, rounded up.
func Blocks(n int64) BlockCount { return BlockCount((n + BlockSize - 1) / BlockSize) }

// Bytes gives the bytes in c blocks.
func (c BlockCount) Bytes() int64 { return int64(c) * BlockSize }

// Range is a run of blocks of a volume.
type Range struct {
	Start BlockNumber
	Count BlockCount
}

// End is the first block after the range.
func (r Range) End() BlockNumber { return r.Start + BlockNumber(r.Count) }

// Overlaps tells whether two ranges share a block.
func (r Range) Overlaps(o Range) bool { return r.Start < o.End() && o.Start < r.End() }
