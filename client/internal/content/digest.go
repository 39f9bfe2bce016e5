package content

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// LeafBlocks is the span of a leaf.
const LeafBlocks = 1 << 16

// Zero is the checksum of a block of zeros.
var Zero = stripe.BlockCRC(make([]byte, layout.BlockSize))

// Digest takes the blocks of a volume in ascending order. The zero value is ready.
// Not safe for concurrent use.
type Digest struct {
	leaves []byte // hashes so far
	leaf   hash.Hash
	first  layout.BlockNumber // of the leaf under way
	open   bool               // the leaf has a block
	blocks uint64
}

// Add takes one block's checksum. Blocks that are left out are zero.
func (d *Digest) Add(block layout.BlockNumber, crc uint32) {
	if crc == Zero {
		return
	}
	if first := block / LeafBlocks * LeafBlocks; !d.open || first != d.first {
		d.closeLeaf()
		d.first, d.open = first, true
		if d.leaf == nil {
			d.leaf = sha256.New()
		}
		d.leaf.Reset()
		var head [9]byte
		binary.LittleEndian.PutUint64(head[1:], uint64(first))
		d.leaf.Write(head[:])
	}
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], uint64(block))
	binary.LittleEndian.PutUint32(b[8:], crc)
	d.leaf.Write(b[:])
	d.blocks++
}

func (d *Digest) closeLeaf() {
	if d.open {
		d.leaves = d.leaf.Sum(d.leaves)
		d.open = false
	}
}

// Sum gives the digest of what was added, and how many blocks are not zero. It
// ends the taking.
func (d *Digest) Sum() (digest [sha256.Size]byte, blocks uint64) {
	d.closeLeaf()
	root := sha256.New()
	root.Write([]byte{1})
	root.Write(d.leaves)
	root.Sum(digest[:0])
	return digest, d.blocks
}
