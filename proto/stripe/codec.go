package stripe

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	magic    = 0x31484b53 // "SKH1"
	version  = 1
	fixed    = 88
	rangeLen = 16
	crcLen   = 4

	// MaxRanges bounds the ranges of one stripe.
	MaxRanges = layout.MaxStripeBlocks + 1024
	// MaxLen bounds an encoded header, in bytes.
	MaxLen = fixed + rangeLen*MaxRanges + crcLen*(layout.MaxStripeBlocks*(layout.MaxParity+1)+1)
)

// Castagnoli is the table of every checksum in strake (CRC32C, RFC 3720).
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BlockCRC is the checksum of one block.
func BlockCRC(b []byte) uint32 { return crc32.Checksum(b, Castagnoli) }

// AppendBlockCRCs appends the checksum of each block of a unit to dst.
func AppendBlockCRCs(dst []uint32, unit []byte) []uint32 {
	for ; len(unit) > 0; unit = unit[layout.BlockSize:] {
		dst = append(dst, BlockCRC(unit[:layout.BlockSize]))
	}
	return dst
}

// EncodedLen is the length of the encoded header in bytes.
func (h *Header) EncodedLen() int {
	return fixed + rangeLen*len(h.Ranges) + crcLen*len(h.CRCs) + crcLen
}

// AppendTo appends the encoded header to b. The header must satisfy Check.
func (h *Header) AppendTo(b []byte) []byte {
	le := binary.LittleEndian
	at := len(b)
	b = le.AppendUint32(b, magic)
	b = append(b, version, byte(h.Flags), h.Geometry.K, h.Geometry.M, byte(h.Shard), 0, 0, 0)
	b = le.AppendUint32(b, uint32(h.EncodedLen()))
	for _, v := range [...]uint64{uint64(h.Cell), uint64(h.Volume), uint64(h.Segment), uint64(h.Epoch),
		uint64(h.Seq), uint64(h.Flushed), uint64(h.Offset)} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range [...]uint32{h.Shape.Unit, uint32(h.Shape.Data), h.Blocks, uint32(len(h.Ranges))} {
		b = le.AppendUint32(b, v)
	}
	for _, r := range h.Ranges {
		b = le.AppendUint64(b, uint64(r.Start))
		b = le.AppendUint32(b, r.Count)
		b = append(b, byte(r.Kind), 0, 0, 0)
	}
	for _, c := range h.CRCs {
		b = le.AppendUint32(b, c)
	}
	return le.AppendUint32(b, crc32.Checksum(b[at:], Castagnoli))
}

// Readdress rewrites an encoded header for another participant in place, without
// encoding it again. b must be one whole encoded header.
func Readdress(b []byte, s layout.ShardIndex) {
	b[8] = byte(s)
	end := len(b) - crcLen
	binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], Castagnoli))
}

// Length reads how long the header at the start of b says it is, for walking a
// list of headers. ok is false when b is too short or the length is impossible.
func Length(b []byte) (n int, ok bool) {
	if len(b) < fixed || binary.LittleEndian.Uint32(b) != magic {
		return 0, false
	}
	n = int(binary.LittleEndian.Uint32(b[12:]))
	return n, n >= fixed+crcLen && n <= MaxLen && n <= len(b)
}

// Decode reads one header from the start of b and gives its length. Errors are
// of kind Corrupt or Version.
func Decode(b []byte) (*Header, int, error) {
	n, ok := Length(b)
	if !ok {
		return nil, 0, errs.New(errs.Corrupt, "decode stripe header", "no header of a possible length in %d bytes", len(b))
	}
	b = b[:n]
	le := binary.LittleEndian
	if crc32.Checksum(b[:n-crcLen], Castagnoli) != le.Uint32(b[n-crcLen:]) {
		return nil, 0, errs.New(errs.Corrupt, "decode stripe header", "checksum differs")
	}
	if b[4] != version {
		return nil, 0, errs.New(errs.Version, "decode stripe header", "version %d, this program reads %d", b[4], version)
	}
	h := &Header{
		Flags: Flags(b[5]), Geometry: layout.Geometry{K: b[6], M: b[7]}, Shard: layout.ShardIndex(b[8]),
		Cell: layout.CellID(le.Uint64(b[16:])), Volume: layout.VolumeID(le.Uint64(b[24:])),
		Segment: layout.SegmentID(le.Uint64(b[32:])), Epoch: layout.Epoch(le.Uint64(b[40:])),
		Seq: layout.Seq(le.Uint64(b[48:])), Flushed: layout.Seq(le.Uint64(b[56:])),
		Offset: layout.ShardOffset(le.Uint64(b[64:])),
		Shape:  layout.Shape{Unit: le.Uint32(b[72:]), Data: layout.Mask(le.Uint32(b[76:]))},
		Blocks: le.Uint32(b[80:]),
	}
	if b[9]|b[10]|b[11] != 0 {
		return nil, 0, errs.New(errs.Corrupt, "decode stripe header", "reserved bytes are set")
	}
	if err := h.decodeTail(b[fixed:n-crcLen], int(le.Uint32(b[84:]))); err != nil {
		return nil, 0, err
	}
	return h, n, nil
}

// decodeTail reads ranges and checksums; the tail must hold exactly these.
func (h *Header) decodeTail(b []byte, ranges int) error {
	if ranges < 0 || ranges > MaxRanges || ranges*rangeLen > len(b) {
		return errs.New(errs.Corrupt, "decode stripe header", "%d ranges in %d bytes", ranges, len(b))
	}
	le := binary.LittleEndian
	h.Ranges = make([]Range, ranges)
	for i := range h.Ranges {
		h.Ranges[i] = Range{layout.BlockNumber(le.Uint64(b)), le.Uint32(b[8:]), RangeKind(b[12])}
		if b[13]|b[14]|b[15] != 0 {
			return errs.New(errs.Corrupt, "decode stripe header", "reserved bytes of range %d are set", i)
		}
		b = b[rangeLen:]
	}
	if len(b)%crcLen != 0 {
		return errs.New(errs.Corrupt, "decode stripe header", "%d bytes left over", len(b)%crcLen)
	}
	h.CRCs = make([]uint32, len(b)/crcLen)
	for i := range h.CRCs {
		h.CRCs[i] = le.Uint32(b[crcLen*i:])
	}
	return h.Check()
}
