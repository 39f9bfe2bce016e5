package content

import (
	"encoding/hex"
	"testing"

	"strake/internal/layout"
)

// TestTheDigestOfVersion1 compares with frozen digests: those that exist could
// not be verified if the form changed.
func TestTheDigestOfVersion1(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks []layout.BlockNumber
		want   string
	}{
		{"nothing", nil, "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"},
		{"one block", []layout.BlockNumber{7}, "f6ac26a5352e100d43bf8203cdd54e2d0faea3b4830a63a99a79669ff6c17994"},
		{"two leaves", []layout.BlockNumber{1, LeafBlocks - 1, LeafBlocks, 9 * LeafBlocks}, "cbf7604579c45c9f0b4c75de815790e16bbf21502a38d8c3a67e2f7fa5a38ace"},
	} {
		var d Digest
		for _, b := range c.blocks {
			d.Add(b, uint32(b)+1)
		}
		got, n := d.Sum()
		if hex.EncodeToString(got[:]) != c.want || n != uint64(len(c.blocks)) {
			t.Errorf("%s: %x of %d blocks, want %s", c.name, got, n, c.want)
		}
	}
}

func TestBlocksOfZerosAreNoPartOfTheDigest(t *testing.T) {
	var a, b Digest
	a.Add(5, 1)
	b.Add(4, Zero)
	b.Add(5, 1)
	b.Add(LeafBlocks+1, Zero)
	x, _ := a.Sum()
	y, n := b.Sum()
	if x != y || n != 1 {
		t.Errorf("%x and %x of %d blocks", x, y, n)
	}
}

func TestEachBlocksNumberAndChecksumCount(t *testing.T) {
	seen := map[[32]byte]bool{}
	for block := range layout.BlockNumber(3) {
		for crc := range uint32(3) {
			var d Digest
			d.Add(block*LeafBlocks, crc)
			sum, _ := d.Sum()
			if seen[sum] {
				t.Errorf("block %d with checksum %d has the digest of another", block, crc)
			}
			seen[sum] = true
		}
	}
}
