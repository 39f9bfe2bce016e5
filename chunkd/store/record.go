package store

import (
	"math/bits"
	"sync"

	"strake/chunkd/format"
	"strake/proto/frame"
)

// record is a small append between its arrival and its sync: laid out in memory
// as it will stand in the log, so that the payload is copied once, on arrival.
type record struct {
	head  format.LogHead // LSN and First are set by the log
	ref   frame.ShardRef
	bytes []byte // the whole record, padding included
	file  *logFile
	pos   int64 // file and pos are set by the log: where it went
}

func (r *record) length() int64 { return int64(len(r.bytes)) }

func (r *record) header() []byte {
	return r.bytes[format.LogHeadLen : format.LogHeadLen+r.head.Header]
}

func (r *record) payload() []byte {
	at := format.LogHeadLen + r.head.Header
	return r.bytes[at : at+r.head.Payload]
}

// records keeps records for use again, by capacity: four classes for each power
// of two, as they stay in memory for some time.
type records struct {
	classes [4 * 32]sync.Pool
}

// classOf gives the class that n bytes belong to, and what it holds.
func classOf(n int64) (class int, capacity int64) {
	power := max(bits.Len64(uint64(n-1)), minPower)
	step := int64(1) << (power - 3)
	steps := max(0, (n-4*step+step-1)/step)
	return 4*power + int(steps) - 1, (4 + steps) * step
}

const minPower = 9 // no record is shorter than a LogStep

// get gives a record with n bytes of any content.
func (p *records) get(n int64) *record {
	class, capacity := classOf(n)
	if r, ok := p.classes[class].Get().(*record); ok {
		r.bytes = r.bytes[:n]
		return r
	}
	return &record{bytes: make([]byte, n, capacity)}
}

// put takes a record back that nobody looks at any more.
func (p *records) put(r *record) {
	*r = record{bytes: r.bytes}
	class, _ := classOf(int64(cap(r.bytes)))
	p.classes[class].Put(r)
}
