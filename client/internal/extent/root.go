package extent

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// The root record, version 1, little-endian, frozen, 64 bytes:
//
//	 0  4  magic "SKXR"
//	 4  1  version (1)
//	 5  3  zero
//	 8  8  covers: the last seq in the map
//	16  8  root page: segment
//	24  8  offset, bytes
//	32  4  unit, bytes
//	36  4  data mask
//	40  4  payload index
//	44  4  blocks
//	48  4  CRC32C of the page
//	52  8  zero
//	60  4  CRC32C of all bytes before
const (
	rootMagic = 0x52584b53 // "SKXR"
	// RootVersion is the version of the roots that this program writes.
	RootVersion = 1
	rootLen     = 64
)

func encodeRoot(covers layout.Seq, p PageRef) Root {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, rootLen), rootMagic)
	b = append(b, RootVersion, 0, 0, 0)
	for _, v := range [...]uint64{uint64(covers), uint64(p.Segment), uint64(p.Offset)} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range [...]uint32{p.Shape.Unit, uint32(p.Shape.Data), p.Index, p.Blocks, p.CRC, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	return le.AppendUint32(b, crc32.Checksum(b, stripe.Castagnoli))
}

func decodeRoot(b Root) (p PageRef, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) != rootLen || le.Uint32(b) != rootMagic:
		return p, badRoot("%d bytes that are no root", len(b))
	case crc32.Checksum(b[:rootLen-4], stripe.Castagnoli) != le.Uint32(b[rootLen-4:]):
		return p, badRoot("checksum differs")
	case b[4] != RootVersion:
		return p, unknownVersion("read map root", b[4])
	case !allZero(b[5:8]) || !allZero(b[52:60]):
		return p, badRoot("reserved bytes are set")
	}
	p = PageRef{Segment: layout.SegmentID(le.Uint64(b[16:])), Offset: layout.ShardOffset(le.Uint64(b[24:])),
		Shape: layout.Shape{Unit: le.Uint32(b[32:]), Data: layout.Mask(le.Uint32(b[36:]))},
		Index: le.Uint32(b[40:]), Blocks: le.Uint32(b[44:]), CRC: le.Uint32(b[48:]),
		Kind: KindRoot, First: le.Uint64(b[8:])}
	return p, p.check()
}

// check tells whether the ref's spot is possible.
func (r PageRef) check() error {
	inner := node{kind: KindExtent, level: 1}
	spot := r
	spot.First = 0 // any
	if _, ok := inner.rowEnd(spot.row()); !ok || r.Shape.Unit%layout.BlockSize != 0 || r.Offset < 0 || r.Offset%layout.BlockSize != 0 {
		return badRoot("impossible page ref %+v", r)
	}
	return nil
}

// Covers is the last seq in the map that the root describes.
func (r Root) Covers() (layout.Seq, error) {
	p, err := decodeRoot(r)
	return layout.Seq(p.First), err
}

func badRoot(format string, args ...any) error {
	return errs.New(errs.Corrupt, "read map root", format, args...)
}

func unknownVersion(op string, v byte) error {
	return errs.New(errs.Version, op, "version %d, this program reads %d", v, PageVersion)
}
