package server

import (
	"testing"

	"strake/internal/errs"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// TestADamagedBlockOfALargeUnitIsRefused: checksums that are made while a unit is
// received find a flipped bit in each of its blocks, first, inner and last.
func TestADamagedBlockOfALargeUnitIsRefused(t *testing.T) {
	s := openStore(t, vfs.NewMem(vfs.MemOptions{}))
	shard(t, s, ref(9, 0), 4<<20)
	c := start(t, Limits{}, s)
	p := c.connect(t)
	const n = 1 << 20
	meta, payload := unit(ref(9, 0), 1, 0, n)
	for _, at := range []int{0, 4095, 4096, receiveStep - 1, receiveStep, n/2 + 77, n - 1} {
		payload[at] ^= 0x10
		p.refused(errs.Corrupt, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		payload[at] ^= 0x10
	}
	p.refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
}
