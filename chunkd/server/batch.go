package server

import (
	"net"

	"strake/internal/errs"
	"strake/proto/frame"
)

const (
	// slabLen is room for the replies that are collected for one write.
	slabLen = 128 << 10
	// batchBytes ends a batch that large payloads made long.
	batchBytes = 1 << 20
)

// batch collects replies for one write. Headers and small payloads stand one
// after another in the slab, so that many small replies are one write of one
// run of bytes; large payloads are separate runs between them. It belongs to
// one goroutine at a time.
type batch struct {
	pool   *buffers
	memory *budget

	slab  *buffer // nil while empty
	used  int     // bytes of the slab
	taken int     // bytes of the slab that stand in runs already
	runs  net.Buffers
	held  []*buffer // given back after the write
	bytes int
	owed  int64 // to memory, given back after the write
}

// fits tells whether n more bytes go into the slab.
func (b *batch) fits(n int) bool { return b.slab == nil || b.used+n <= len(b.slab.bytes) }

// reserve gives the next n bytes of the slab to be filled; n must fit. They
// count only once they are committed.
func (b *batch) reserve(n int) []byte {
	if b.slab == nil {
		b.slab = b.pool.get(max(slabLen, n))
	}
	return b.slab.bytes[b.used : b.used+n : b.used+n]
}

// commit makes the n bytes that were reserved last part of the batch.
func (b *batch) commit(n int) { b.used, b.bytes = b.used+n, b.bytes+n }

// add appends a reply whose payload is in pieces; the batch takes the buffers
// over. The header and meta must fit; meta may stand in its place already.
func (b *batch) add(rep *frame.Reply, meta []byte, pieces []piece) {
	n := frame.HeaderLen + len(meta)
	rep.Payload = 0
	for _, p := range pieces {
		rep.Payload += len(p.bytes)
	}
	at := b.reserve(n)
	copy(at[frame.HeaderLen:], meta)
	rep.Encode(at, meta)
	b.commit(n)
	for _, p := range pieces {
		b.cut()
		b.runs, b.held = append(b.runs, p.bytes), append(b.held, p.buf)
		b.bytes += len(p.bytes)
	}
}

// addError appends a refusal. It must fit, see errorLen.
func (b *batch) addError(rep *frame.Reply, err error) {
	rep.Status, rep.Payload = errs.KindOf(err), 0
	at := b.reserve(errorLen)
	meta := frame.AppendError(at[frame.HeaderLen:frame.HeaderLen], err)
	rep.Encode(at, meta)
	b.commit(frame.HeaderLen + len(meta))
}

// errorLen is the longest error reply.
const errorLen = frame.HeaderLen + 2 + 2*2048

// cut ends the run of slab bytes that large payloads will follow.
func (b *batch) cut() {
	if b.used > b.taken {
		b.runs = append(b.runs, b.slab.bytes[b.taken:b.used])
		b.taken = b.used
	}
}

// full tells whether the batch should be written before it takes more.
func (b *batch) full() bool { return b.bytes >= batchBytes }

// clear gives all buffers back.
func (b *batch) clear() {
	b.pool.put(b.slab)
	for i, p := range b.held {
		b.pool.put(p)
		b.held[i] = nil
	}
	clear(b.runs)
	b.memory.release(b.owed)
	b.slab, b.used, b.taken, b.bytes, b.owed = nil, 0, 0, 0, 0
	b.runs, b.held = b.runs[:0], b.held[:0]
}

// piece is a part of a payload that does not stand in the slab.
type piece struct {
	bytes []byte
	buf   *buffer // that bytes is in; nil when it is not pooled
}
