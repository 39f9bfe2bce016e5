package client

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// A trace is a header and records of one length, version 1, little-endian, frozen:
//
//	 0  8  magic "STRKTRAC"
//	 8  4  version (1)
//	12  8  when the trace began, ns since 1970
//	20  4  CRC32C of the 20 bytes before
//
// and for each operation that ended, in that order:
//
//	 0  8  when it began, ns since the trace did
//	 8  8  volume
//	16  8  offset in bytes
//	24  4  length in bytes, the greatest number when it is more
//	28  4  how long it took, in 100 ns, the same
//	32  1  what it was: TraceOp
//	33  1  class
//	34  2  errs.Kind of its error, 0: none
//	36  4  CRC32C of the 36 bytes before
const (
	traceMagic   = "STRKTRAC"
	traceVersion = 1
	traceHeader  = 24
	traceRecord  = 40
	traceBuffer  = 1 << 20
	traceTick    = 100 * time.Nanosecond
)

// TraceOp is what an operation was. Numbers are frozen.
type TraceOp uint8

// Operations.
const (
	TraceRead  TraceOp = 1
	TraceWrite TraceOp = 2
	TraceFlush TraceOp = 3
	TraceClear TraceOp = 4 // discard, or zeroes without payload
)

// TraceRecord is one operation of a trace.
type TraceRecord struct {
	Began  time.Duration // since the trace began
	Took   time.Duration
	Volume uint64
	Offset int64
	Length int64
	Op     TraceOp
	Class  uint8
	Error  errs.Kind // errs.OK: it succeeded
}

// Trace records every operation of the cells that it is given to (Config.Trace).
// Safe for concurrent use. Close it, else its end is missing.
type Trace struct {
	begin time.Time

	mu  sync.Mutex // guards all below
	out *bufio.Writer
	err error // the first of the writer; nothing is recorded after it
	one [traceRecord]byte
}

// NewTrace begins a trace on w.
func NewTrace(w io.Writer) *Trace {
	t := &Trace{begin: time.Now(), out: bufio.NewWriterSize(w, traceBuffer)}
	b := append(make([]byte, 0, traceHeader), traceMagic...)
	b = binary.LittleEndian.AppendUint32(b, traceVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.begin.UnixNano()))
	_, t.err = t.out.Write(binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, stripe.Castagnoli)))
	return t
}

// Close writes what is buffered, and gives the first error of the writer.
func (t *Trace) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.out.Flush()
	}
	return errs.As(t.err, errs.Unavailable, "write a trace")
}

// now is when an operation begins; a nil trace does not ask the clock.
func (t *Trace) now() (began time.Time) {
	if t != nil {
		began = time.Now()
	}
	return began
}

// note records an operation on v that began then and has ended.
func (t *Trace) note(v *Volume, op TraceOp, off int64, n int, began time.Time, err error) {
	if t != nil {
		t.noteIn(v, v.class, op, off, n, began, err)
	}
}

// noteIn is note for an operation in a class of its own.
func (t *Trace) noteIn(v *Volume, class layout.Class, op TraceOp, off int64, n int, began time.Time, err error) {
	if t == nil {
		return
	}
	took := time.Since(began)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	encodeTrace(&t.one, TraceRecord{Began: began.Sub(t.begin), Took: took, Volume: uint64(v.id), Offset: off, Length: int64(n), Op: op,
		Class: uint8(class), Error: kindOfEnd(err)})
	_, t.err = t.out.Write(t.one[:])
}

// kindOfEnd is an error's kind; the end of a volume is none.
func kindOfEnd(err error) errs.Kind {
	if err == nil || err == io.EOF {
		return errs.OK
	}
	return errs.KindOf(err)
}

func encodeTrace(b *[traceRecord]byte, r TraceRecord) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(max(0, r.Began)))
	le.PutUint64(b[8:], r.Volume)
	le.PutUint64(b[16:], uint64(r.Offset))
	le.PutUint32(b[24:], uint32(min(max(0, r.Length), math.MaxUint32)))
	le.PutUint32(b[28:], uint32(min(max(0, r.Took/traceTick), math.MaxUint32)))
	b[32], b[33] = byte(r.Op), r.Class
	le.PutUint16(b[34:], uint16(r.Error))
	le.PutUint32(b[36:], crc32.Checksum(b[:36], stripe.Castagnoli))
}

// decodeTrace reads one record. Error: Corrupt.
func decodeTrace(b *[traceRecord]byte) (TraceRecord, error) {
	le := binary.LittleEndian
	r := TraceRecord{Began: time.Duration(le.Uint64(b[0:])), Volume: le.Uint64(b[8:]), Offset: int64(le.Uint64(b[16:])), Length: int64(le.Uint32(b[24:])),
		Took: time.Duration(le.Uint32(b[28:])) * traceTick, Op: TraceOp(b[32]), Class: b[33], Error: errs.Kind(le.Uint16(b[34:]))}
	if le.Uint32(b[36:]) != crc32.Checksum(b[:36], stripe.Castagnoli) || r.Began < 0 || r.Op < TraceRead || r.Op > TraceClear || r.Offset < 0 ||
		r.Offset > layout.MaxVolumeBytes {
		return r, errs.New(errs.Corrupt, "read a trace", "a record is damaged")
	}
	return r, nil
}

// ReadTrace gives visit every record of a trace, in the order in which operations
// ended, until it returns an error. Errors: Corrupt for damage and for a record
// that was cut off, Version, visit's own.
func ReadTrace(r io.Reader, visit func(TraceRecord) error) (began time.Time, err error) {
	in := bufio.NewReaderSize(r, traceBuffer)
	var head [traceHeader]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return began, errs.As(err, errs.Corrupt, "read a trace")
	}
	le := binary.LittleEndian
	if string(head[:8]) != traceMagic || le.Uint32(head[20:]) != crc32.Checksum(head[:20], stripe.Castagnoli) {
		return began, errs.New(errs.Corrupt, "read a trace", "this is no trace, or its header is damaged")
	}
	if v := le.Uint32(head[8:]); v != traceVersion {
		return began, errs.New(errs.Version, "read a trace", "version %d, this program reads %d", v, traceVersion)
	}
	began = time.Unix(0, int64(le.Uint64(head[12:])))
	for {
		var b [traceRecord]byte
		if _, err := io.ReadFull(in, b[:]); err == io.EOF {
			return began, nil
		} else if err != nil {
			return began, errs.As(err, errs.Corrupt, "read a trace")
		}
		record, err := decodeTrace(&b)
		if err != nil {
			return began, err
		}
		if err := visit(record); err != nil {
			return began, err
		}
	}
}
