package server

import (
	"math/bits"
	"sync"

	"strake/proto/frame"
)

const (
	smallestClass = 16 // log2 of the smallest pooled buffer: 64 KiB
	classes       = 9  // up to 16 MiB, the longest payload

	bufferLen = 1 << smallestClass
)

// A buffer that can't hold a frame's longest payload would not compile.
const _ = uint(bufferLen<<(classes-1) - frame.MaxPayload)

// buffer is a pooled run of bytes; its length is a power of two.
type buffer struct {
	bytes []byte
	class int
}

// buffers is a pool of buffers by length. Safe for concurrent use.
type buffers struct {
	pools [classes]sync.Pool
}

// get gives a buffer of at least n bytes, n at most frame.MaxPayload. Its
// content is left over from an earlier use.
func (p *buffers) get(n int) *buffer {
	class := max(0, bits.Len(uint(max(n, 1)-1))-smallestClass)
	if b, ok := p.pools[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, bufferLen<<class), class}
}

// put gives a buffer back; nil is allowed.
func (p *buffers) put(b *buffer) {
	if b != nil {
		p.pools[b.class].Put(b)
	}
}
