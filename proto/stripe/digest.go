package stripe

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"strake/internal/layout"
)

// Digest is the running digest of a list of stripes: SHA-256 over (digest
// before, epoch, seq, offset, unit, data mask, checksum of all unit CRCs) of
// each stripe in seq order, cut to 16 bytes. It does not depend on the shard
// that listed them, nor on the writer's flushed seq, so that every list of the
// same stripes gives the same value. The zero value is the empty list's.
type Digest [16]byte

// Add gives the digest with one more stripe.
func (d Digest) Add(h *Header) Digest { return d.add(h, crcOfCRCs(h.CRCs)) }

func (d Digest) add(h *Header, crcs uint32) Digest {
	le := binary.LittleEndian
	var space [len(d) + 8*3 + 4*3]byte
	b := space[:0]
	b = append(b, d[:]...)
	b = le.AppendUint64(b, uint64(h.Epoch))
	b = le.AppendUint64(b, uint64(h.Seq))
	b = le.AppendUint64(b, uint64(h.Offset))
	b = le.AppendUint32(b, h.Shape.Unit)
	b = le.AppendUint32(b, uint32(h.Shape.Data))
	b = le.AppendUint32(b, crcs)
	sum := sha256.Sum256(b)
	return Digest(sum[:len(d)])
}

// crcOfCRCs is the CRC32C of the checksums, encoded little-endian.
func crcOfCRCs(crcs []uint32) uint32 {
	var sum uint32
	var b [256]byte
	for len(crcs) > 0 {
		n := min(len(crcs), len(b)/4)
		for i, c := range crcs[:n] {
			binary.LittleEndian.PutUint32(b[4*i:], c)
		}
		sum = crc32.Update(sum, Castagnoli, b[:4*n])
		crcs = crcs[n:]
	}
	return sum
}

// ShardSeal is what a seal says of one shard: how many stripes it holds, the
// digest of their list, and the offset where its last unit ends.
type ShardSeal struct {
	Count  uint32
	Length layout.ShardOffset
	Digest Digest
}

// Seal ends a segment for ever at an agreed list of stripes. An empty segment
// has First = Last = 0 and zero counts.
type Seal struct {
	Segment     layout.SegmentID
	First, Last layout.Seq
	Count       uint32 // stripes in the segment
	Shards      []ShardSeal
}

// NewSeal is the seal of an empty segment of the given width.
func NewSeal(id layout.SegmentID, g layout.Geometry) Seal {
	return Seal{Segment: id, Shards: make([]ShardSeal, g.Shards())}
}

// Add extends the seal by a stripe; stripes come in seq order.
func (s *Seal) Add(h *Header) {
	if s.Count == 0 {
		s.First = h.Seq
	}
	s.Last = h.Seq
	s.Count++
	crcs := crcOfCRCs(h.CRCs)
	for p := h.Participants(); p != 0; p &= p - 1 {
		i, _ := p.Nth(0)
		s.Shards[i].add(h, crcs)
	}
}

// Add extends one shard's list by a stripe in which it takes part.
func (s *ShardSeal) Add(h *Header) { s.add(h, crcOfCRCs(h.CRCs)) }

func (s *ShardSeal) add(h *Header, crcs uint32) {
	s.Count++
	s.Digest = s.Digest.add(h, crcs)
	if h.Shape.Unit > 0 {
		s.Length = h.End()
	}
}

// Clone gives an independent copy.
func (s Seal) Clone() Seal {
	s.Shards = append([]ShardSeal(nil), s.Shards...)
	return s
}
