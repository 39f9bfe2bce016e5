package format

import (
	"crypto/sha256"
	"encoding/binary"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// A record of the append log: head, stripe header, payload, zeros up to the
// next LogStep. Records that were written and synced together are a batch; they
// lie one after another, and a batch begins at a multiple of the device's sector,
// LogStep to LogAlign, so that a write never covers a sector that holds synced
// bytes. Head, version 1, frozen:
//
//	 0  4  magic "SKL1"
//	 4  1  version (1)    5  1  shard    6  2  zero
//	 8  8  LSN
//	16  8  LSN of the batch's first record
//	24  8  segment
//	32  8  seq
//	40  8  offset
//	48  4  generation
//	52  4  length of the stripe header
//	56  4  length of the payload; a multiple of 4096, may be 0
//	60  4  the stripe header's own checksum
//	64  8  incarnation that wrote it
//	72  8  tag: SHA-256 of the device's log key and the 72 bytes before, cut
//	80  .. stripe header (has its CRC), payload (its block CRCs are in the header)
//
// The tag is keyed because a reader looks for heads at every LogStep of a file
// that also holds payloads, which tenants choose: none can forge a record.
//
// Reading a log: LSNs have no gaps, and a batch is written only after the one
// before it was synced. So a record is a torn tail, never durable, only if its
// LSN is in the last batch or after it; one missing or damaged below that was
// durable once and is damaged now.
const (
	// LogHeadLen is the length of a head in bytes.
	LogHeadLen = 80
	// LogStep is the alignment of a record, LogAlign that of a log file's length and
	// the most that a batch has, in bytes.
	LogStep  = 512
	LogAlign = 4096

	logMagic   = 0x314c4b53 // "SKL1"
	logVersion = 1
	logTagAt   = 72
)

// LogHead is the head of a log record.
type LogHead struct {
	LSN, First  LSN // First <= LSN: the batch's first
	Key         layout.ShardKey
	Generation  layout.Generation
	Seq         layout.Seq
	Offset      layout.ShardOffset
	Header      uint32 // length of the stripe header, bytes
	Payload     uint32 // length of the payload, bytes
	HeaderCRC   uint32
	Incarnation layout.Incarnation
}

// Len is the length of the whole record in bytes.
func (h *LogHead) Len() int64 { return LogRecordLen(int(h.Header), int(h.Payload)) }

// LogRecordLen is the length of a record in bytes, padding included.
func LogRecordLen(header, payload int) int64 {
	return (LogHeadLen + int64(header) + int64(payload) + LogStep - 1) &^ (LogStep - 1)
}

// Put writes the head into b[:LogHeadLen].
func (h *LogHead) Put(b []byte, key *[16]byte) {
	le := binary.LittleEndian
	le.PutUint32(b, logMagic)
	b[4], b[5], b[6], b[7] = logVersion, byte(h.Key.Shard), 0, 0
	le.PutUint64(b[8:], uint64(h.LSN))
	le.PutUint64(b[16:], uint64(h.First))
	le.PutUint64(b[24:], uint64(h.Key.Segment))
	le.PutUint64(b[32:], uint64(h.Seq))
	le.PutUint64(b[40:], uint64(h.Offset))
	le.PutUint32(b[48:], uint32(h.Generation))
	le.PutUint32(b[52:], h.Header)
	le.PutUint32(b[56:], h.Payload)
	le.PutUint32(b[60:], h.HeaderCRC)
	le.PutUint64(b[64:], uint64(h.Incarnation))
	le.PutUint64(b[logTagAt:], tag(key, b))
}

// DecodeLogHead reads a head. ok is false when there is none, or a damaged one.
func DecodeLogHead(b []byte, key *[16]byte) (h LogHead, ok bool) {
	le := binary.LittleEndian
	if len(b) < LogHeadLen || le.Uint32(b) != logMagic || b[4] != logVersion || tag(key, b) != le.Uint64(b[logTagAt:]) {
		return LogHead{}, false
	}
	h = LogHead{
		LSN: LSN(le.Uint64(b[8:])), First: LSN(le.Uint64(b[16:])),
		Key: layout.ShardKey{Segment: layout.SegmentID(le.Uint64(b[24:])), Shard: layout.ShardIndex(b[5])},
		Seq: layout.Seq(le.Uint64(b[32:])), Offset: layout.ShardOffset(le.Uint64(b[40:])),
		Generation: layout.Generation(le.Uint32(b[48:])), Header: le.Uint32(b[52:]), Payload: le.Uint32(b[56:]),
		HeaderCRC: le.Uint32(b[60:]), Incarnation: layout.Incarnation(le.Uint64(b[64:])),
	}
	return h, b[6]|b[7] == 0 && h.First > 0 && h.First <= h.LSN && h.Key.Shard < layout.MaxShards &&
		h.Header <= stripe.MaxLen && h.Payload <= layout.MaxStripePayload && h.Payload%layout.BlockSize == 0 &&
		h.Offset >= 0 && h.Offset <= layout.MaxShardLength && h.Offset%layout.BlockSize == 0
}

// AlienLogHead tells whether b begins with a head that another version of this
// program wrote on this device, which one, and the record's LSN. Magic, version,
// LSN and tag lie where they are in every version.
func AlienLogHead(b []byte, key *[16]byte) (version byte, lsn LSN, alien bool) {
	le := binary.LittleEndian
	if len(b) < LogHeadLen || le.Uint32(b) != logMagic || b[4] == logVersion || tag(key, b) != le.Uint64(b[logTagAt:]) {
		return 0, 0, false
	}
	return b[4], LSN(le.Uint64(b[8:])), true
}

// Body splits what follows the head in the record b and verifies all of it.
func (h *LogHead) Body(b []byte) (header, payload []byte, err error) {
	if int64(len(b)) < h.Len() {
		return nil, nil, errs.New(errs.Corrupt, "read log record", "%d bytes, want %d", len(b), h.Len())
	}
	header = b[LogHeadLen : LogHeadLen+h.Header]
	payload = b[LogHeadLen+h.Header : LogHeadLen+h.Header+h.Payload]
	v, err := ParseView(header)
	if err != nil {
		return nil, nil, err
	}
	if v.CRC != h.HeaderCRC || v.Key() != h.Key || v.Seq != h.Seq || v.Offset != h.Offset || v.Unit != h.Payload {
		return nil, nil, errs.New(errs.Corrupt, "read log record", "the header is another stripe's")
	}
	return header, payload, v.Verify(payload)
}

// tag seals a head: 8 bytes of SHA-256 under the device's key.
func tag(key *[16]byte, head []byte) uint64 {
	var b [16 + logTagAt]byte
	copy(b[:], key[:])
	copy(b[16:], head[:logTagAt])
	sum := sha256.Sum256(b[:])
	return binary.LittleEndian.Uint64(sum[:])
}
