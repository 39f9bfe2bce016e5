package format

import (
	"encoding/binary"
	"hash/crc32"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// The mark, little-endian, frozen with its version:
//
//	 0  1  version (1)     1  7  zero
//	 8 16  device UUID
//	24  8  incarnation
//	32  8  freed: log records up to this LSN are in data files
//	40  8  durable: log records up to this LSN were synced for sure
//	48  4  CRC32C of all bytes before
//
// A tombstone: generation (4), CRC32C (4). A doubt: unit length (4), CRC32C (4).
const (
	// MarkLen is the length of a mark in bytes.
	MarkLen = 52
	// TombstoneLen and DoubtLen are the lengths of those records in bytes.
	TombstoneLen = 8
	DoubtLen     = 8

	markVersion = 1
)

// LSN numbers the records of a device's append log, starting at 1.
type LSN uint64

// Mark binds an index to its device and tells what the log no longer needs.
type Mark struct {
	UUID        layout.UUID
	Incarnation layout.Incarnation
	Freed       LSN
	Durable     LSN // at least Freed
}

// AppendTo appends the encoded mark to b.
func (m *Mark) AppendTo(b []byte) []byte {
	le, at := binary.LittleEndian, len(b)
	b = append(b, markVersion, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, m.UUID[:]...)
	b = le.AppendUint64(b, uint64(m.Incarnation))
	b = le.AppendUint64(b, uint64(m.Freed))
	b = le.AppendUint64(b, uint64(m.Durable))
	return le.AppendUint32(b, crc32.Checksum(b[at:], stripe.Castagnoli))
}

// DecodeMark reads a mark. Errors are of kind Corrupt or Version.
func DecodeMark(b []byte) (Mark, error) {
	const op = "decode mark"
	le := binary.LittleEndian
	end := len(b) - 4
	if end < 1 || crc32.Checksum(b[:end], stripe.Castagnoli) != le.Uint32(b[end:]) {
		return Mark{}, errs.New(errs.Corrupt, op, "checksum differs in %d bytes", len(b))
	}
	if b[0] != markVersion { // which may have another length
		return Mark{}, errs.New(errs.Version, op, "version %d, this program reads %d", b[0], markVersion)
	}
	if len(b) != MarkLen {
		return Mark{}, errs.New(errs.Corrupt, op, "%d bytes, want %d", len(b), MarkLen)
	}
	m := Mark{UUID: layout.UUID(b[8:24]), Incarnation: layout.Incarnation(le.Uint64(b[24:])),
		Freed: LSN(le.Uint64(b[32:])), Durable: LSN(le.Uint64(b[40:]))}
	if !zero(b[1:8]) || m.Durable < m.Freed {
		return Mark{}, errs.New(errs.Corrupt, op, "freed %d, durable %d", m.Freed, m.Durable)
	}
	return m, nil
}

// AppendTombstone appends the record of a deleted shard: the highest generation
// that was deleted here.
func AppendTombstone(b []byte, g layout.Generation) []byte { return appendSealed(b, uint32(g)) }

// DecodeTombstone reads it.
func DecodeTombstone(b []byte) (layout.Generation, error) {
	v, err := decodeSealed("decode tombstone", b)
	return layout.Generation(v), err
}

// AppendDoubt appends the record of a damaged stripe: its unit in bytes.
func AppendDoubt(b []byte, unit uint32) []byte { return appendSealed(b, unit) }

// DecodeDoubt reads it.
func DecodeDoubt(b []byte) (unit uint32, err error) { return decodeSealed("decode doubt", b) }

func appendSealed(b []byte, v uint32) []byte {
	b = binary.LittleEndian.AppendUint32(b, v)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(b)-4:], stripe.Castagnoli))
}

func decodeSealed(op string, b []byte) (uint32, error) {
	le := binary.LittleEndian
	if len(b) != 8 || crc32.Checksum(b[:4], stripe.Castagnoli) != le.Uint32(b[4:]) {
		return 0, errs.New(errs.Corrupt, op, "checksum differs in %d bytes", len(b))
	}
	return le.Uint32(b), nil
}
