package format

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// A shard's record in the index. Version 1, little-endian, frozen:
//
//	  0  1  version (1)
//	  1  1  state: 1 open, 2 fenced, 3 finalized, 4 incomplete
//	  2  1  flags: 1 map, 2 untrimmed, 4 doubtful
//	  3  1  k         4  1  m
//	  5  1  shard     6  2  zero
//	  8  8  segment
//	 16  4  generation
//	 20  4  stripes in the seal
//	 24  8  cell
//	 32  8  volume
//	 40  8  epoch that allocated it
//	 48  8  fence: lower epochs are refused
//	 56  8  length promised, bytes
//	 64  8  last seq of the seal
//	 72  8  length in the seal, bytes
//	 80 16  digest in the seal
//	 96  8  bytes stored (finalized and incomplete shards)
//	104  4  CRC32C of all bytes before
const (
	// ShardRecordLen is the length of the record in bytes.
	ShardRecordLen = 108

	shardVersion = 1
	shardFlags   = FlagMap | FlagUntrimmed | FlagDoubtful
)

// ShardState is a shard's state on disk.
type ShardState uint8

// States; numbers are frozen.
const (
	ShardOpen       ShardState = 1
	ShardFenced     ShardState = 2
	ShardFinalized  ShardState = 3
	ShardIncomplete ShardState = 4
)

// ShardFlags of a shard's record.
type ShardFlags uint8

const (
	// FlagMap: the shard holds pages of an extent map.
	FlagMap ShardFlags = 1
	// FlagUntrimmed: finalized, but what lies beyond the seal may still be in
	// the data file.
	FlagUntrimmed ShardFlags = 2
	// FlagDoubtful: stripes may be missing from the list that once were durable
	// here (a rotten log, a missing file): the shard can't tell "never".
	FlagDoubtful ShardFlags = 4
)

// Shard is a shard's record.
type Shard struct {
	Key        layout.ShardKey
	Generation layout.Generation
	State      ShardState
	Flags      ShardFlags
	Geometry   layout.Geometry
	Cell       layout.CellID
	Volume     layout.VolumeID
	Epoch      layout.Epoch
	Fence      layout.Epoch
	Length     layout.ShardOffset
	Last       layout.Seq       // these are zero until the shard was finalized
	Seal       stripe.ShardSeal //
	Stored     int64            //
}

// AppendTo appends the encoded record to b.
func (s *Shard) AppendTo(b []byte) []byte {
	le, at := binary.LittleEndian, len(b)
	b = append(b, shardVersion, byte(s.State), byte(s.Flags), s.Geometry.K, s.Geometry.M, byte(s.Key.Shard), 0, 0)
	b = le.AppendUint64(b, uint64(s.Key.Segment))
	b = le.AppendUint32(b, uint32(s.Generation))
	b = le.AppendUint32(b, s.Seal.Count)
	for _, v := range [...]uint64{uint64(s.Cell), uint64(s.Volume), uint64(s.Epoch), uint64(s.Fence),
		uint64(s.Length), uint64(s.Last), uint64(s.Seal.Length)} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, s.Seal.Digest[:]...)
	b = le.AppendUint64(b, uint64(s.Stored))
	return le.AppendUint32(b, crc32.Checksum(b[at:], stripe.Castagnoli))
}

// DecodeShard reads a shard's record. Errors are of kind Corrupt or Version.
func DecodeShard(b []byte) (Shard, error) {
	const op = "decode shard record"
	le := binary.LittleEndian
	end := len(b) - 4
	if end < 1 || crc32.Checksum(b[:end], stripe.Castagnoli) != le.Uint32(b[end:]) {
		return Shard{}, errs.New(errs.Corrupt, op, "checksum differs in %d bytes", len(b))
	}
	if b[0] != shardVersion { // which may have another length
		return Shard{}, errs.New(errs.Version, op, "version %d, this program reads %d", b[0], shardVersion)
	}
	if len(b) != ShardRecordLen {
		return Shard{}, errs.New(errs.Corrupt, op, "%d bytes, want %d", len(b), ShardRecordLen)
	}
	s := Shard{
		Key:        layout.ShardKey{Segment: layout.SegmentID(le.Uint64(b[8:])), Shard: layout.ShardIndex(b[5])},
		Generation: layout.Generation(le.Uint32(b[16:])), State: ShardState(b[1]), Flags: ShardFlags(b[2]),
		Geometry: layout.Geometry{K: b[3], M: b[4]},
		Cell:     layout.CellID(le.Uint64(b[24:])), Volume: layout.VolumeID(le.Uint64(b[32:])),
		Epoch: layout.Epoch(le.Uint64(b[40:])), Fence: layout.Epoch(le.Uint64(b[48:])),
		Length: layout.ShardOffset(le.Uint64(b[56:])), Last: layout.Seq(le.Uint64(b[64:])),
		Seal: stripe.ShardSeal{Count: le.Uint32(b[20:]), Length: layout.ShardOffset(le.Uint64(b[72:])),
			Digest: stripe.Digest(b[80:96])},
		Stored: int64(le.Uint64(b[96:])),
	}
	if b[6]|b[7] != 0 {
		return Shard{}, errs.New(errs.Corrupt, op, "reserved bytes are set")
	}
	return s, s.check()
}

func (s *Shard) check() error {
	g := s.Geometry
	switch {
	case s.State < ShardOpen || s.State > ShardIncomplete, s.Flags&^shardFlags != 0,
		!g.Valid() || int(s.Key.Shard) >= g.Shards(),
		s.Length <= 0 || s.Length > layout.MaxShardLength || s.Length%layout.BlockSize != 0,
		s.Seal.Length < 0 || s.Seal.Length > s.Length, s.Stored < 0 || s.Stored > int64(s.Length):
		return errs.New(errs.Corrupt, "check shard record", "fields do not fit together: %+v", *s)
	}
	return nil
}
