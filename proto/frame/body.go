package frame

import (
	"encoding/binary"

	"strake/internal/errs"
	"strake/internal/layout"
)

// What stands in meta, by kind (little-endian, frozen with the version):
//
//	Hello   request: cell (8), volume (8), token length (4), token
//	        reply:   server (8), handle (4)
//	Append  request: segment (8), shard (1), zero (3), generation (4), the stripe
//	                 header; payload: the unit
//	        reply:   none
//	Read    request: segment (8), shard (1), zero (3), generation (4),
//	                 n (4), n x {offset (8), bytes (4)}; all multiples of 4096
//	        reply:   CRC32C of each block of all ranges (4 each), unless NoCRCs;
//	                 payload: the ranges' bytes one after another. A block that no
//	                 stripe covers reads as zeros with checksum 0.
//	        reply to Headers: n (4), n stripe headers ascending, each once; TooLarge
//	                 when they exceed MaxMeta: ask for fewer ranges.
//	Sync    request: incarnation (8), device (8), n (4), n x {segment (8), shard (1), zero (3), generation (4)}
//	        reply:   none
//	List    request: segment (8), shard (1), zero (3), generation (4), from seq (8), most bytes (4)
//	        reply:   next seq (8; 0: that was all), n (4); payload: n stripe headers
//	Ping    none, none
//
// Error replies (status not OK): hint length (2), hint, message.

const (
	// MaxReadRanges bounds the ranges of one Read.
	MaxReadRanges = 1024
	// MaxSyncShards bounds the shards of one Sync.
	MaxSyncShards = 1024
	// MaxToken bounds a token, in bytes.
	MaxToken = 4096

	shardRefLen = 16
)

// ShardRef names a shard and the placement that the sender knows.
type ShardRef struct {
	layout.ShardKey
	Generation layout.Generation
}

// HelloBody opens a connection.
type HelloBody struct {
	Cell   layout.CellID
	Volume layout.VolumeID // 0: not bound to one volume
	Token  []byte          // empty in a cell without security
}

// HelloReply answers it.
type HelloReply struct {
	Server layout.ServerID
	Handle layout.TokenHandle
}

// AppendBody stores one unit.
type AppendBody struct {
	Shard  ShardRef
	Header []byte // one encoded stripe header
}

// ReadRange is a run of bytes of a shard, both multiples of BlockSize.
type ReadRange struct {
	Offset layout.ShardOffset
	Length uint32
}

// ReadBody asks for ranges of one shard, ascending or not.
type ReadBody struct {
	Shard  ShardRef
	Ranges []ReadRange
}

// Bytes is the length of the reply's payload.
func (b *ReadBody) Bytes() (n int) {
	for _, r := range b.Ranges {
		n += int(r.Length)
	}
	return n
}

// SyncBody asks one device to make shards durable. A device whose incarnation
// differs answers IncarnationMoved.
type SyncBody struct {
	Incarnation layout.Incarnation
	Device      layout.DeviceID
	Shards      []ShardRef
}

// ListBody asks for the stripe headers of a shard, ascending, from a seq.
type ListBody struct {
	Shard ShardRef
	From  layout.Seq
	Most  uint32 // bytes of headers; at least one header is given
}

// ListReply answers it.
type ListReply struct {
	Next  layout.Seq // 0: no more
	Count uint32
}

// AppendTo appends the encoded body to b.
func (h *HelloBody) AppendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(h.Cell))
	b = le.AppendUint64(b, uint64(h.Volume))
	b = le.AppendUint32(b, uint32(len(h.Token)))
	return append(b, h.Token...)
}

// DecodeHello reads a Hello's meta.
func DecodeHello(b []byte) (HelloBody, error) {
	le := binary.LittleEndian
	if len(b) < 20 || int(le.Uint32(b[16:])) != len(b)-20 || len(b)-20 > MaxToken {
		return HelloBody{}, malformed(Hello, len(b))
	}
	return HelloBody{layout.CellID(le.Uint64(b)), layout.VolumeID(le.Uint64(b[8:])), b[20:]}, nil
}

// AppendTo appends the encoded body to b.
func (h *HelloReply) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Server))
	return binary.LittleEndian.AppendUint32(b, uint32(h.Handle))
}

// DecodeHelloReply reads the meta of a Hello's reply.
func DecodeHelloReply(b []byte) (HelloReply, error) {
	if len(b) != 12 {
		return HelloReply{}, malformed(Hello, len(b))
	}
	return HelloReply{layout.ServerID(binary.LittleEndian.Uint64(b)), layout.TokenHandle(binary.LittleEndian.Uint32(b[8:]))}, nil
}

// AppendTo appends the encoded body to b.
func (a *AppendBody) AppendTo(b []byte) []byte { return append(a.Shard.appendTo(b), a.Header...) }

// DecodeAppend reads an Append's meta. Header aliases b.
func DecodeAppend(b []byte) (AppendBody, error) {
	ref, rest, err := decodeShardRef(Append, b)
	return AppendBody{ref, rest}, err
}

// AppendTo appends the encoded body to b.
func (r *ReadBody) AppendTo(b []byte) []byte {
	b = r.Shard.appendTo(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Ranges)))
	for _, g := range r.Ranges {
		b = binary.LittleEndian.AppendUint64(b, uint64(g.Offset))
		b = binary.LittleEndian.AppendUint32(b, g.Length)
	}
	return b
}

// DecodeRead reads a Read's meta into ranges (reused when it is large enough).
// Every range is within a shard of the largest length, and their sum within
// MaxPayload.
func DecodeRead(b []byte, ranges []ReadRange) (ReadBody, error) {
	ref, rest, err := decodeShardRef(Read, b)
	if err != nil {
		return ReadBody{}, err
	}
	le := binary.LittleEndian
	if len(rest) < 4 || le.Uint32(rest) == 0 || le.Uint32(rest) > MaxReadRanges || len(rest) != 4+12*int(le.Uint32(rest)) {
		return ReadBody{}, malformed(Read, len(b))
	}
	ranges = ranges[:0]
	total := 0
	for rest = rest[4:]; len(rest) > 0; rest = rest[12:] {
		g := ReadRange{layout.ShardOffset(le.Uint64(rest)), le.Uint32(rest[8:])}
		total += int(g.Length)
		if g.Offset < 0 || g.Offset%layout.BlockSize != 0 || g.Length == 0 || g.Length%layout.BlockSize != 0 ||
			g.Offset > layout.MaxShardLength-layout.ShardOffset(g.Length) || total > MaxPayload {
			return ReadBody{}, errs.New(errs.InvalidArgument, "decode read", "range at %d of %d bytes", g.Offset, g.Length)
		}
		ranges = append(ranges, g)
	}
	return ReadBody{ref, ranges}, nil
}

// AppendTo appends the encoded body to b.
func (s *SyncBody) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Incarnation))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Device))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Shards)))
	for _, r := range s.Shards {
		b = r.appendTo(b)
	}
	return b
}

// DecodeSync reads a Sync's meta.
func DecodeSync(b []byte) (SyncBody, error) {
	le := binary.LittleEndian
	if len(b) < 20 || le.Uint32(b[16:]) > MaxSyncShards || len(b) != 20+shardRefLen*int(le.Uint32(b[16:])) {
		return SyncBody{}, malformed(Sync, len(b))
	}
	s := SyncBody{Incarnation: layout.Incarnation(le.Uint64(b)), Device: layout.DeviceID(le.Uint64(b[8:]))}
	if n := le.Uint32(b[16:]); n > 0 {
		s.Shards = make([]ShardRef, 0, n)
	}
	for rest := b[20:]; len(rest) > 0; {
		ref, next, err := decodeShardRef(Sync, rest)
		if err != nil {
			return SyncBody{}, err
		}
		s.Shards, rest = append(s.Shards, ref), next
	}
	return s, nil
}

// AppendTo appends the encoded body to b.
func (l *ListBody) AppendTo(b []byte) []byte {
	b = l.Shard.appendTo(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.From))
	return binary.LittleEndian.AppendUint32(b, l.Most)
}

// DecodeList reads a List's meta.
func DecodeList(b []byte) (ListBody, error) {
	ref, rest, err := decodeShardRef(List, b)
	if err != nil || len(rest) != 12 {
		return ListBody{}, malformed(List, len(b))
	}
	return ListBody{ref, layout.Seq(binary.LittleEndian.Uint64(rest)), binary.LittleEndian.Uint32(rest[8:])}, nil
}

// AppendTo appends the encoded body to b.
func (l *ListReply) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Next))
	return binary.LittleEndian.AppendUint32(b, l.Count)
}

// DecodeListReply reads the meta of a List's reply.
func DecodeListReply(b []byte) (ListReply, error) {
	if len(b) != 12 {
		return ListReply{}, malformed(List, len(b))
	}
	return ListReply{layout.Seq(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])}, nil
}

// AppendError appends the meta of an error reply.
func AppendError(b []byte, err error) []byte {
	hint, message := clip(errs.HintOf(err)), clip(err.Error())
	b = binary.LittleEndian.AppendUint16(b, uint16(len(hint)))
	b = append(b, hint...)
	return append(b, message...)
}

// DecodeError rebuilds the error of a reply whose status is not OK.
func DecodeError(kind errs.Kind, b []byte) error {
	e := errs.New(kind, "", "")
	if len(b) >= 2 {
		if n := int(binary.LittleEndian.Uint16(b)); n <= len(b)-2 {
			e.Hint, e.Message = string(b[2:2+n]), string(b[2+n:])
		}
	}
	return e
}

func clip(s string) string { return s[:min(len(s), 2048)] }

func (r ShardRef) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Segment))
	b = append(b, byte(r.Shard), 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(r.Generation))
}

func decodeShardRef(k Kind, b []byte) (ShardRef, []byte, error) {
	if len(b) < shardRefLen || b[9]|b[10]|b[11] != 0 || b[8] >= layout.MaxShards {
		return ShardRef{}, nil, malformed(k, len(b))
	}
	le := binary.LittleEndian
	key := layout.ShardKey{Segment: layout.SegmentID(le.Uint64(b)), Shard: layout.ShardIndex(b[8])}
	return ShardRef{key, layout.Generation(le.Uint32(b[12:]))}, b[shardRefLen:], nil
}

func malformed(k Kind, n int) error {
	return errs.New(errs.InvalidArgument, "decode "+k.String(), "malformed fields in %d bytes", n)
}
