package format

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Positions in an encoded stripe header (package stripe draws it; frozen).
const (
	viewFixed   = 88
	viewVersion = 1
)

// View is an encoded stripe header read in place: identity, place, and the
// checksums of its own shard's unit. Unlike stripe.Decode it allocates nothing,
// which the read path needs; it checks the header's checksum and what it reads,
// not how the ranges fit together (stripe.Decode did, before it was stored).
type View struct {
	Cell    layout.CellID
	Volume  layout.VolumeID
	Segment layout.SegmentID
	Shard   layout.ShardIndex
	Epoch   layout.Epoch
	Seq     layout.Seq
	Offset  layout.ShardOffset
	Unit    uint32
	CRC     uint32 // the header's own
	crcs    []byte // of the blocks of this shard's unit
}

// ParseView reads one header that fills b. Errors are of kind Corrupt or Version.
func ParseView(b []byte) (View, error) {
	n, ok := stripe.Length(b)
	if !ok || n != len(b) {
		return View{}, badView("no header of %d bytes", len(b))
	}
	le, end := binary.LittleEndian, n-4
	v := View{
		Shard: layout.ShardIndex(b[8]), Cell: layout.CellID(le.Uint64(b[16:])), Volume: layout.VolumeID(le.Uint64(b[24:])),
		Segment: layout.SegmentID(le.Uint64(b[32:])), Epoch: layout.Epoch(le.Uint64(b[40:])), Seq: layout.Seq(le.Uint64(b[48:])),
		Offset: layout.ShardOffset(le.Uint64(b[64:])), Unit: le.Uint32(b[72:]), CRC: le.Uint32(b[end:]),
	}
	if crc32.Checksum(b[:end], stripe.Castagnoli) != v.CRC {
		return View{}, badView("checksum differs")
	}
	if b[4] != viewVersion {
		return View{}, errs.New(errs.Version, "read stripe header", "version %d, this program reads %d", b[4], viewVersion)
	}
	g := layout.Geometry{K: b[6], M: b[7]}
	parts := g.Participants(layout.Shape{Unit: v.Unit, Data: layout.Mask(le.Uint32(b[76:]))})
	blocks := int(v.Unit / layout.BlockSize)
	from := viewFixed + 16*int(le.Uint32(b[84:])) + 4*blocks*parts.Rank(v.Shard)
	if !g.Valid() || !parts.Has(v.Shard) || v.Unit%layout.BlockSize != 0 || v.Unit > layout.MaxStripePayload ||
		from < viewFixed || from+4*blocks > end || v.Offset < 0 || v.Offset%layout.BlockSize != 0 || v.End() > layout.MaxShardLength {
		return View{}, badView("fields do not fit together")
	}
	v.crcs = b[from : from+4*blocks]
	return v, nil
}

// Key names the shard that the header belongs to.
func (v *View) Key() layout.ShardKey { return layout.ShardKey{Segment: v.Segment, Shard: v.Shard} }

// End is the first offset after the unit.
func (v *View) End() layout.ShardOffset { return v.Offset + layout.ShardOffset(v.Unit) }

// BlockCRC is the checksum of block i of the unit.
func (v *View) BlockCRC(i int) uint32 { return binary.LittleEndian.Uint32(v.crcs[4*i:]) }

// Verify checks a unit's bytes against the header.
func (v *View) Verify(unit []byte) error {
	if len(unit) != int(v.Unit) {
		return badView("unit of %d bytes, want %d", len(unit), v.Unit)
	}
	for i := 0; len(unit) > 0; i++ {
		if stripe.BlockCRC(unit[:layout.BlockSize]) != v.BlockCRC(i) {
			return badView("block %d of the unit: checksum differs", i)
		}
		unit = unit[layout.BlockSize:]
	}
	return nil
}

func badView(format string, args ...any) error {
	return errs.New(errs.Corrupt, "read stripe header", format, args...)
}
