package bench

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	// bodyBlocks is how many different blocks there are before the stamp.
	bodyBlocks = 1024
	bodyBytes  = bodyBlocks * layout.BlockSize
	// contentSeed makes the bodies; fixed, so that each run has the same bytes.
	contentSeed = 0x5712a4e
	// genShift: a stamp is a block's number below this bit and its generation above.
	genShift = 40
)

// content gives the bytes that a block of the bench holds:
//
//	0        8                                          4096
//	| stamp  | body of (block mod 1024), never changing |
//	stamp: generation << 40 | block, big endian
//
// So a buffer for a write is right but for its stamps, which cost 8 bytes a block
// to set, and a read can be checked at any place.
type content struct{ body []byte }

func newContent() *content {
	c := &content{body: make([]byte, bodyBytes)}
	source := rand.NewPCG(contentSeed, 1)
	for i := 0; i < len(c.body); i += 8 {
		binary.LittleEndian.PutUint64(c.body[i:], source.Uint64())
	}
	return c
}

func stamp(block int64, gen uint64) uint64 { return gen<<genShift | uint64(block) }

func (c *content) bodyOf(block int64) []byte {
	return c.body[block%bodyBlocks*layout.BlockSize:][:layout.BlockSize]
}

// fill makes the bytes of whole blocks from off.
func (c *content) fill(p []byte, off int64, gen uint64) {
	for at := 0; at < len(p); at += layout.BlockSize {
		copy(p[at:], c.bodyOf((off+int64(at))/layout.BlockSize))
	}
	c.stamp(p, off, gen)
}

// stamp sets the stamps of a buffer whose bodies are right already.
func (c *content) stamp(p []byte, off int64, gen uint64) {
	block := off / layout.BlockSize
	for at := 0; at < len(p); at += layout.BlockSize {
		binary.BigEndian.PutUint64(p[at:], stamp(block, gen))
		block++
	}
}

// glance looks at the stamps of the first and the last block.
func (c *content) glance(p []byte, off int64, gen uint64) error {
	for _, at := range [2]int{0, len(p) - layout.BlockSize} {
		block := (off + int64(at)) / layout.BlockSize
		if got, want := binary.BigEndian.Uint64(p[at:]), stamp(block, gen); got != want {
			return wrong(block, got, want)
		}
	}
	return nil
}

// compare compares one whole block.
func (c *content) compare(p []byte, block int64, gen uint64) error {
	if got, want := binary.BigEndian.Uint64(p), stamp(block, gen); got != want {
		return wrong(block, got, want)
	}
	if !bytes.Equal(p[8:layout.BlockSize], c.bodyOf(block)[8:]) {
		return errs.New(errs.Corrupt, "check what was read", "block %d has its stamp and wrong bytes", block)
	}
	return nil
}

func wrong(block int64, got, want uint64) error {
	return errs.New(errs.Corrupt, "check what was read", "block %d begins with %#x, want %#x", block, got, want)
}
