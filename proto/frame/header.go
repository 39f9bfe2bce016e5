package frame

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

const (
	magic   = 0x5354
	version = 1
	// HeaderLen is the length of the fixed header in bytes.
	HeaderLen = 64
	// MaxMeta bounds the fields of a frame; an Append's holds a stripe header.
	MaxMeta = stripe.MaxLen + 256
	// MaxPayload bounds the payload of a frame, in bytes.
	MaxPayload = layout.MaxStripePayload
)

// Kind is what a frame asks for; a reply has the kind of its request.
type Kind uint8

// Frame kinds. Numbers are frozen.
const (
	Hello  Kind = 1 // who I am; the first frame of a connection
	Append Kind = 2 // store one unit and its stripe header
	Read   Kind = 3 // ranges of one shard
	Sync   Kind = 4 // make shards durable
	List   Kind = 5 // the stripe headers of a shard
	Ping   Kind = 6 // is the server there

	maxKind = Ping
)

// String gives the kind's name.
func (k Kind) String() string {
	names := [...]string{"none", "hello", "append", "read", "sync", "list", "ping"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Flags of a frame.
type Flags uint8

const (
	// Durable on Append: reply only when the unit is durable (FUA).
	Durable Flags = 1
	// Recovery on Read and List: the sender recovers the volume under the epoch
	// in the header; the shard must be fenced at exactly that epoch.
	Recovery Flags = 2
	// NoCRCs on Read: the reply leaves the block checksums out.
	NoCRCs Flags = 4
	// Headers on Read: the reply's meta holds, instead of block checksums, the
	// whole stripe headers that cover the ranges (a degraded read checks what it
	// decodes by the lost unit's CRCs, which every participant's header has).
	Headers Flags = 8
)

// KnownFlags are the flags of requests that have a meaning.
const KnownFlags = Durable | Recovery | NoCRCs | Headers

const replyBit = 0x80

// readingFlag is Reply.Reading.
const readingFlag = 1

// Request is the header of a request.
type Request struct {
	Kind     Kind
	Class    layout.Class
	Flags    Flags
	ID       uint64
	Epoch    layout.Epoch
	Acked    layout.Seq
	Flushed  layout.Seq
	Tenant   layout.TenantID
	Token    layout.TokenHandle
	Deadline time.Duration // from receipt; 0: none; kept in whole µs, at most 71 minutes
	Meta     int           // bytes that follow the header
	Payload  int           // bytes that follow meta
}

// Reply is the header of a reply.
type Reply struct {
	Kind        Kind
	Status      errs.Kind // OK, or why not; meta is then an error text (see AppendError)
	ID          uint64
	Incarnation layout.Incarnation
	Queue       time.Duration // spent waiting in the server; whole µs
	Service     time.Duration // spent at the device; whole µs
	Generation  layout.Generation
	Load        uint32 // the device's queue length when the reply was made
	Reading     bool   // somebody read at the device in the last second, not in the background
	Meta        int
	Payload     int
}

// Encode writes the header for a frame with the given meta into b[:HeaderLen].
// It sets r.Meta from meta.
func (r *Request) Encode(b, meta []byte) {
	le := binary.LittleEndian
	r.Meta = len(meta)
	putCommon(b, byte(r.Kind), r.Meta, r.Payload, r.ID)
	b[12], b[13] = byte(r.Class), byte(r.Flags)
	le.PutUint16(b[14:], 0)
	le.PutUint64(b[24:], uint64(r.Epoch))
	le.PutUint64(b[32:], uint64(r.Acked))
	le.PutUint64(b[40:], uint64(r.Flushed))
	le.PutUint32(b[48:], uint32(r.Tenant))
	le.PutUint32(b[52:], uint32(r.Token))
	le.PutUint32(b[56:], micros(r.Deadline))
	putCRC(b, meta)
}

// Encode writes the header for a frame with the given meta into b[:HeaderLen].
// It sets r.Meta from meta.
func (r *Reply) Encode(b, meta []byte) {
	le := binary.LittleEndian
	r.Meta = len(meta)
	putCommon(b, byte(r.Kind)|replyBit, r.Meta, r.Payload, r.ID)
	b[12], b[13] = 0, 0
	if r.Reading {
		b[13] = readingFlag
	}
	le.PutUint16(b[14:], uint16(r.Status))
	le.PutUint64(b[24:], uint64(r.Incarnation))
	le.PutUint32(b[32:], micros(r.Queue))
	le.PutUint32(b[36:], micros(r.Service))
	le.PutUint32(b[40:], uint32(r.Generation))
	le.PutUint32(b[44:], r.Load)
	clear(b[48:60])
	putCRC(b, meta)
}

// DecodeRequest reads a request's header from b[:HeaderLen]. The checksum is
// checked by Verify, once meta has been read.
func DecodeRequest(b []byte) (Request, error) {
	kind, err := common(b)
	if err != nil {
		return Request{}, err
	}
	if kind&replyBit != 0 || kind == 0 || Kind(kind) > maxKind {
		return Request{}, errs.New(errs.Corrupt, "decode frame", "kind %#x is no request", kind)
	}
	le := binary.LittleEndian
	return Request{
		Kind: Kind(kind), Class: layout.Class(b[12]), Flags: Flags(b[13]), ID: le.Uint64(b[16:]),
		Epoch: layout.Epoch(le.Uint64(b[24:])), Acked: layout.Seq(le.Uint64(b[32:])), Flushed: layout.Seq(le.Uint64(b[40:])),
		Tenant: layout.TenantID(le.Uint32(b[48:])), Token: layout.TokenHandle(le.Uint32(b[52:])),
		Deadline: time.Duration(le.Uint32(b[56:])) * time.Microsecond,
		Meta:     int(le.Uint32(b[4:])), Payload: int(le.Uint32(b[8:])),
	}, nil
}

// DecodeReply reads a reply's header from b[:HeaderLen]. The checksum is
// checked by Verify, once meta has been read.
func DecodeReply(b []byte) (Reply, error) {
	kind, err := common(b)
	if err != nil {
		return Reply{}, err
	}
	k := Kind(kind &^ replyBit)
	if kind&replyBit == 0 || k == 0 || k > maxKind {
		return Reply{}, errs.New(errs.Corrupt, "decode frame", "kind %#x is no reply", kind)
	}
	le := binary.LittleEndian
	return Reply{
		Kind: k, Status: errs.Kind(le.Uint16(b[14:])), ID: le.Uint64(b[16:]),
		Incarnation: layout.Incarnation(le.Uint64(b[24:])),
		Queue:       time.Duration(le.Uint32(b[32:])) * time.Microsecond,
		Service:     time.Duration(le.Uint32(b[36:])) * time.Microsecond,
		Generation:  layout.Generation(le.Uint32(b[40:])), Load: le.Uint32(b[44:]), Reading: b[13]&readingFlag != 0,
		Meta: int(le.Uint32(b[4:])), Payload: int(le.Uint32(b[8:])),
	}, nil
}

// Verify checks the header's checksum over the header and meta.
func Verify(header, meta []byte) error {
	if crcOf(header, meta) != binary.LittleEndian.Uint32(header[60:]) {
		return errs.New(errs.Corrupt, "decode frame", "header checksum differs")
	}
	return nil
}

func putCommon(b []byte, kind byte, meta, payload int, id uint64) {
	le := binary.LittleEndian
	le.PutUint16(b, magic)
	b[2], b[3] = version, kind
	le.PutUint32(b[4:], uint32(meta))
	le.PutUint32(b[8:], uint32(payload))
	le.PutUint64(b[16:], id)
}

func common(b []byte) (kind byte, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < HeaderLen || le.Uint16(b) != magic:
		return 0, errs.New(errs.Corrupt, "decode frame", "no frame header")
	case b[2] != version:
		return 0, errs.New(errs.Version, "decode frame", "version %d, this program speaks %d", b[2], version)
	case le.Uint32(b[4:]) > MaxMeta || le.Uint32(b[8:]) > MaxPayload:
		return 0, errs.New(errs.TooLarge, "decode frame", "meta of %d and payload of %d bytes, at most %d and %d are allowed",
			le.Uint32(b[4:]), le.Uint32(b[8:]), MaxMeta, MaxPayload)
	}
	return b[3], nil
}

func putCRC(b, meta []byte) { binary.LittleEndian.PutUint32(b[60:], crcOf(b, meta)) }

func crcOf(b, meta []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:60], stripe.Castagnoli), stripe.Castagnoli, meta)
}

// micros rounds a positive duration up, so that a deadline never becomes "none".
func micros(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	const most = (1<<32 - 1) * time.Microsecond
	return uint32((min(d, most) + time.Microsecond - 1) / time.Microsecond)
}
