package state

import (
	"encoding/binary"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// A segment's record in memory and in snapshots, version 1, frozen. u stands
// for an unsigned varint in its shortest form:
//
//	1  flags: bits 0-2 state, 3 map, 4 a seal or list follows, 5 retired, 6 lost, 7 born
//	1  k-1 in the low nibble, m-1 in the high one
//	u  volume     u  epoch     8  command, little-endian
//	u  shard length in blocks
//	   k+m times: u device, u generation
//	   with bit 4: u first seq, u last-first, u stripes, u length in blocks,
//	   16 digest: the whole list, which every parity shard has; then of each
//	   data shard: u stripes; if not 0: u length in blocks; and if it is not
//	   the whole list: 16 digest
//	u  retired, with bit 5
//	u  lost shards, a bit each, with bit 6
//	u  born, with bit 7
//
// So a sealed 4+2 segment takes about 150 bytes. Seals are stored only after
// they were found to fit, which is what lets parity share one list.
const (
	flagMap     = 1 << 3
	flagSeal    = 1 << 4
	flagRetired = 1 << 5
	flagLost    = 1 << 6
	flagBorn    = 1 << 7
)

func pack(s *Segment) string {
	flags := byte(s.State)
	if s.Map {
		flags |= flagMap
	}
	if s.hasList() {
		flags |= flagSeal
	}
	if s.Retired != 0 {
		flags |= flagRetired
	}
	if s.Lost != 0 {
		flags |= flagLost
	}
	if s.Born != 0 {
		flags |= flagBorn
	}
	b := make([]byte, 0, 192)
	b = append(b, flags, (s.Geometry.K-1)|(s.Geometry.M-1)<<4)
	b = binary.AppendUvarint(b, uint64(s.Volume))
	b = binary.AppendUvarint(b, uint64(s.Epoch))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Command))
	b = binary.AppendUvarint(b, uint64(s.ShardLength)/layout.BlockSize)
	for _, p := range s.Placements {
		b = binary.AppendUvarint(b, uint64(p.Device))
		b = binary.AppendUvarint(b, uint64(p.Generation))
	}
	if s.hasList() {
		b = packSeal(b, s.Geometry, &s.Seal)
	}
	if s.Retired != 0 {
		b = binary.AppendUvarint(b, s.Retired)
	}
	if s.Lost != 0 {
		b = binary.AppendUvarint(b, uint64(s.Lost))
	}
	if s.Born != 0 {
		b = binary.AppendUvarint(b, uint64(s.Born))
	}
	return string(b)
}

// hasList tells whether a seal, or an unsealed map segment's list, is kept.
func (s *Segment) hasList() bool { return s.Listed || s.State == Sealed || s.State == Finalized }

func packSeal(b []byte, g layout.Geometry, s *Seal) []byte {
	whole := s.Shards[g.K]
	b = binary.AppendUvarint(b, uint64(s.First))
	b = binary.AppendUvarint(b, uint64(s.Last-s.First))
	b = binary.AppendUvarint(b, uint64(s.Count))
	b = binary.AppendUvarint(b, uint64(whole.Length)/layout.BlockSize)
	b = append(b, whole.Digest[:]...)
	for _, sh := range s.Shards[:g.K] {
		b = binary.AppendUvarint(b, uint64(sh.Count))
		if sh.Count == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(sh.Length)/layout.BlockSize)
		if sh.Count != s.Count {
			b = append(b, sh.Digest[:]...)
		}
	}
	return b
}

// unpacker reads a record; the first impossible byte latches bad.
type unpacker struct {
	b   string
	bad bool
}

func (u *unpacker) take(n int) string {
	if u.bad || len(u.b) < n {
		u.bad = true
		return ""
	}
	s := u.b[:n]
	u.b = u.b[n:]
	return s
}

func (u *unpacker) uvarint(most uint64) uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c := u.take(1)
		if u.bad {
			return 0
		}
		v |= uint64(c[0]&0x7f) << shift
		if c[0] < 0x80 {
			break
		}
	}
	if v > most {
		u.bad = true
		return 0
	}
	return v
}

func (u *unpacker) digest() (d stripe.Digest) {
	copy(d[:], u.take(len(d)))
	return d
}

func (u *unpacker) byte() byte {
	if s := u.take(1); !u.bad {
		return s[0]
	}
	return 0
}

const (
	mostID     = ^uint64(0)
	mostBlocks = layout.MaxShardLength / layout.BlockSize
)

// unpack reads the record of segment id from outside. It refuses records that
// pack never makes; it does not look at the rest of the state.
func unpack(id layout.SegmentID, record string) (*Segment, error) {
	s, err := parse(id, record)
	if err != nil {
		return nil, err
	}
	if s.checkRecord() != nil || pack(s) != record {
		return nil, badRecord(id)
	}
	return s, nil
}

// parse reads a record that pack made.
func parse(id layout.SegmentID, record string) (*Segment, error) {
	u := unpacker{b: record}
	flags, shape := u.byte(), u.byte()
	s := &Segment{ID: id, State: SegmentState(flags & 7), Map: flags&flagMap != 0,
		Geometry: layout.Geometry{K: shape&15 + 1, M: shape>>4 + 1}}
	if u.bad || !s.Geometry.Valid() || s.State > Dropped {
		return nil, badRecord(id)
	}
	s.Volume = layout.VolumeID(u.uvarint(mostID))
	s.Epoch = layout.Epoch(u.uvarint(mostID))
	if c := u.take(8); !u.bad {
		s.Command = CommandID(binary.LittleEndian.Uint64([]byte(c)))
	}
	s.ShardLength = layout.ShardOffset(u.uvarint(mostBlocks) * layout.BlockSize)
	s.Placements = make([]Placement, s.Geometry.Shards())
	for i := range s.Placements {
		s.Placements[i].Device = layout.DeviceID(u.uvarint(mostID))
		s.Placements[i].Generation = layout.Generation(u.uvarint(1<<32 - 1))
	}
	if flags&flagSeal != 0 {
		s.Seal = u.seal(id, s.Geometry)
		s.Listed = s.State < Sealed
	}
	if flags&flagRetired != 0 {
		s.Retired = u.uvarint(mostID)
	}
	if flags&flagLost != 0 {
		s.Lost = layout.Mask(u.uvarint(1<<layout.MaxShards - 1))
	}
	if flags&flagBorn != 0 {
		s.Born = layout.RootNumber(u.uvarint(mostID))
	}
	if u.bad || u.b != "" {
		return nil, badRecord(id)
	}
	return s, nil
}

func badRecord(id layout.SegmentID) error {
	return errs.New(errs.Corrupt, "read segment record", "the record of segment %d is not one that was written", id)
}

func (u *unpacker) seal(id layout.SegmentID, g layout.Geometry) Seal {
	s := Seal{Segment: id, Shards: make([]ShardSeal, g.Shards())}
	s.First = layout.Seq(u.uvarint(mostID))
	s.Last = s.First + layout.Seq(u.uvarint(mostID))
	s.Count = uint32(u.uvarint(1<<32 - 1))
	whole := ShardSeal{Count: s.Count, Length: u.length(), Digest: u.digest()}
	for i := range s.Shards {
		sh := &s.Shards[i]
		if i >= int(g.K) {
			*sh = whole
			continue
		}
		if sh.Count = uint32(u.uvarint(1<<32 - 1)); sh.Count == 0 {
			continue
		}
		if sh.Length = u.length(); sh.Count == s.Count {
			sh.Digest = whole.Digest
		} else {
			sh.Digest = u.digest()
		}
	}
	return s
}

func (u *unpacker) length() layout.ShardOffset {
	return layout.ShardOffset(u.uvarint(mostBlocks) * layout.BlockSize)
}

// checkRecord is what holds of every segment by itself (I6, I7).
func (s *Segment) checkRecord() error {
	op := "check segment record"
	if s.Volume == 0 || s.Epoch == 0 || s.ShardLength <= 0 || s.Retired != 0 && s.State < Sealed {
		return errs.New(errs.Internal, op, "I6: segment %d: volume %d, epoch %d, shard length %d, retired %d while %v",
			s.ID, s.Volume, s.Epoch, s.ShardLength, s.Retired, s.State)
	}
	if s.Lost != 0 && s.State != Sealed && s.State != Finalized || s.Lost>>s.Geometry.Shards() != 0 {
		return errs.New(errs.Internal, op, "I6: segment %d, %v: shards %b are lost", s.ID, s.State, s.Lost)
	}
	if s.Born != 0 && !s.Map {
		return errs.New(errs.Internal, op, "I6: data segment %d has a first root", s.ID)
	}
	for i, p := range s.Placements {
		if p.Device == 0 || p.Generation == 0 {
			return errs.New(errs.Internal, op, "I6: segment %d shard %d has no placement", s.ID, i)
		}
		for _, q := range s.Placements[:i] {
			if q.Device == p.Device {
				return errs.New(errs.Internal, op, "I6: segment %d has two shards on device %d", s.ID, p.Device)
			}
		}
	}
	if s.Listed && !s.Map {
		return errs.New(errs.Internal, op, "I7: unsealed data segment %d has a list", s.ID)
	}
	if s.hasList() {
		if s.Seal.Count == 0 {
			return errs.New(errs.Internal, op, "I7: segment %d is sealed empty and not dropped", s.ID)
		}
		return s.Seal.fits(s)
	}
	return nil
}
