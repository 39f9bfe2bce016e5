package client

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"strake/internal/layout"
)

const (
	// smallestBuffer is the least size, in bytes, of what is kept for reuse.
	smallestBuffer = layout.BlockSize
	// bufferClasses are the sizes kept: each twice the one before, up to maxPiece.
	bufferClasses = 13
)

// buffers keeps the memory of payloads for reuse. Safe for concurrent use.
type buffers [bufferClasses]sync.Pool

// buffer is the memory of one write's payload. It goes back when nobody refers
// to it any more: the write, until all of it is flushed; stripes on their way,
// late copies too; reads that copy from it.
type buffer struct {
	whole []byte
	home  *sync.Pool // nil: too large to be kept
	refs  atomic.Int32
}

// get gives n bytes that may hold anything, with one reference.
func (p *buffers) get(n int) *buffer {
	class := max(0, bits.Len(uint(max(n, 1)-1))-bits.Len(smallestBuffer-1))
	var b *buffer
	switch {
	case class >= bufferClasses:
		b = &buffer{whole: make([]byte, n)}
	default:
		if b, _ = p[class].Get().(*buffer); b == nil {
			b = &buffer{whole: make([]byte, smallestBuffer<<class), home: &p[class]}
		}
	}
	b.refs.Store(1)
	return b
}

// retain adds a reference; whoever calls it has one, or the lock of who has.
func (b *buffer) retain() *buffer {
	b.refs.Add(1)
	return b
}

func (b *buffer) release() {
	if b.refs.Add(-1) == 0 && b.home != nil {
		b.home.Put(b)
	}
}
