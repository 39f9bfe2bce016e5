package workload

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math/rand/v2"
)

// BlockSize is a volume's block in bytes.
const BlockSize = 4096

const magic = 0x6b6f6f6c2d61746b

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Stamp is what a block says of itself. The zero Stamp is a block of zeros.
type Stamp struct {
	Block uint64 // its number
	Op    uint64 // that wrote it, from 1
	Index uint64 // in that operation
}

// Fill writes a block that carries a stamp:
//
//	0 magic (8)  8 volume (8)  16 block (8)  24 op (8)  32 index (8)
//	40 noise that follows from the stamp   4092 CRC32C of all before
func Fill(p []byte, volume string, s Stamp) {
	le := binary.LittleEndian
	for i, v := range []uint64{magic, nameOf(volume), s.Block, s.Op, s.Index} {
		le.PutUint64(p[8*i:], v)
	}
	noise := rand.NewPCG(s.Block, s.Op)
	for at := 40; at < BlockSize-4; at += 4 {
		le.PutUint32(p[at:], uint32(noise.Uint64()))
	}
	le.PutUint32(p[BlockSize-4:], crc32.Checksum(p[:BlockSize-4], castagnoli))
}

// Read gives a block's stamp. It is an error when the block is torn, of another
// volume, or of another place.
func Read(p []byte, volume string, block uint64) (Stamp, error) {
	le := binary.LittleEndian
	if isZero(p) {
		return Stamp{}, nil
	}
	s := Stamp{le.Uint64(p[16:]), le.Uint64(p[24:]), le.Uint64(p[32:])}
	switch {
	case le.Uint64(p) != magic:
		return s, fmt.Errorf("block %d is no block of a workload: it begins %x", block, p[:16])
	case le.Uint32(p[BlockSize-4:]) != crc32.Checksum(p[:BlockSize-4], castagnoli):
		return s, fmt.Errorf("block %d is torn: it says block %d, operation %d", block, s.Block, s.Op)
	case le.Uint64(p[8:]) != nameOf(volume) || s.Block != block:
		return s, fmt.Errorf("block %d holds block %d of volume %x, operation %d", block, s.Block, le.Uint64(p[8:]), s.Op)
	}
	return s, nil
}

func isZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

func nameOf(volume string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(volume))
	return h.Sum64()
}
