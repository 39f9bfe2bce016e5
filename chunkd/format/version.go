package format

// The versions of what this program writes on a device: the superblock, a shard's
// record and mark in the index, and records of the append log.
const (
	SuperblockVersion = superblockVersion
	ShardVersion      = shardVersion
	MarkVersion       = markVersion
	LogVersion        = logVersion
)
