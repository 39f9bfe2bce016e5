package format

import (
	"encoding/binary"
	"fmt"

	"strake/internal/layout"
)

// Index keys. A kind byte, then big-endian numbers, so that keys sort by shard,
// and the stripes of a shard by offset, then seq:
//
//	's' segment (8) shard (1)                       a shard (shard.go)
//	'r' segment (8) shard (1) offset (8) seq (8)    a stripe: its encoded header
//	'd' segment (8) shard (1) offset (8) seq (8)    a stripe that was durable and
//	                                                is damaged: a Doubt (mark.go)
//	't' segment (8) shard (1)                       a Tombstone (mark.go)
//	'm'                                             the Mark of the last move (mark.go)
//	'm' 1                                           the Mark of the last other batch
//
// There are no other kinds: a program of another version that adds one, or writes
// tombstones or doubts in another way, raises the superblock's version.
//
// A stripe's value is the header as it came from the writer: it has its own
// checksum and names its shard, offset and seq. The unit's bytes are in the
// shard's data file at the same offset, durable before the record was written.
const (
	KindShard     = 's'
	KindStripe    = 'r'
	KindDoubt     = 'd'
	KindTombstone = 't'
	KindMark      = 'm'

	shardKeyLen  = 10
	stripeKeyLen = shardKeyLen + 16
)

// Kinds are all kinds of keys, ascending.
const Kinds = "dmrst"

// AppendMarkKey appends the key of a mark. There are two, because batches that
// run beside the moves could write an older `freed` after a newer one: only the
// last move's counts. `durable` is the higher of both.
func AppendMarkKey(b []byte, move bool) []byte {
	if move {
		return append(b, KindMark)
	}
	return append(b, KindMark, 1)
}

// AppendShardKey appends the key of a shard's record (KindShard, KindTombstone),
// or the start of its stripes' keys (KindStripe, KindDoubt).
func AppendShardKey(b []byte, kind byte, k layout.ShardKey) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint64(b, uint64(k.Segment))
	return append(b, byte(k.Shard))
}

// AppendStripeKey appends the key of a stripe or a doubt.
func AppendStripeKey(b []byte, kind byte, k layout.ShardKey, offset layout.ShardOffset, seq layout.Seq) []byte {
	b = AppendShardKey(b, kind, k)
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	return binary.BigEndian.AppendUint64(b, uint64(seq))
}

// AppendKeysEnd appends the first key after all of a shard's keys of a kind.
func AppendKeysEnd(b []byte, kind byte, k layout.ShardKey) []byte {
	b = AppendShardKey(b, kind, k)
	b[len(b)-1]++ // a shard index is below MaxShards, so this never wraps
	return b
}

// DecodeShardKey reads the key of a shard or a tombstone.
func DecodeShardKey(b []byte) (k layout.ShardKey, ok bool) {
	if len(b) < shardKeyLen || b[9] >= layout.MaxShards {
		return layout.ShardKey{}, false
	}
	k = layout.ShardKey{Segment: layout.SegmentID(binary.BigEndian.Uint64(b[1:])), Shard: layout.ShardIndex(b[9])}
	return k, len(b) == shardKeyLen && (b[0] == KindShard || b[0] == KindTombstone)
}

// DecodeStripeKey reads the key of a stripe or a doubt.
func DecodeStripeKey(b []byte) (k layout.ShardKey, offset layout.ShardOffset, seq layout.Seq, ok bool) {
	if len(b) != stripeKeyLen || b[0] != KindStripe && b[0] != KindDoubt || b[9] >= layout.MaxShards {
		return layout.ShardKey{}, 0, 0, false
	}
	k = layout.ShardKey{Segment: layout.SegmentID(binary.BigEndian.Uint64(b[1:])), Shard: layout.ShardIndex(b[9])}
	offset = layout.ShardOffset(binary.BigEndian.Uint64(b[10:]))
	return k, offset, layout.Seq(binary.BigEndian.Uint64(b[18:])), offset >= 0
}

// ShardFileName is the name of a shard's data file: segment, shard, generation.
func ShardFileName(k layout.ShardKey, g layout.Generation) string {
	return fmt.Sprintf("%016x-%02x-%08x", uint64(k.Segment), uint8(k.Shard), uint32(g))
}

// ParseShardFileName is the inverse of ShardFileName.
func ParseShardFileName(name string) (k layout.ShardKey, g layout.Generation, ok bool) {
	if _, err := fmt.Sscanf(name, "%016x-%02x-%08x", &k.Segment, &k.Shard, &g); err != nil {
		return layout.ShardKey{}, 0, false
	}
	return k, g, ShardFileName(k, g) == name
}
