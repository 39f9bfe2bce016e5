package store

import (
	"sync"
	"unsafe"

	"strake/internal/layout"
	"strake/proto/frame"
)

// spanBlocks is how many blocks' checksums stand together in the cache: 64 KiB
// of data, so that a miss among 4 KiB stripes reads at most 16 headers.
const spanBlocks = 16

// span holds the checksums of spanBlocks blocks of a finalized shard. It never
// goes stale: what it describes is immutable, and a shard that comes back has
// another generation.
type span struct {
	segment    layout.SegmentID
	crcs       [spanBlocks]uint32
	index      uint32 // the first block over spanBlocks
	generation layout.Generation
	shard      layout.ShardIndex
	used       bool // since the hand came by; a free span has generation 0
}

const (
	spanWays  = 4  // places where a span may stand
	spanLocks = 64 // sets share locks
)

// crcCache is a set-associative cache of spans in one block of memory without
// pointers, so that its bound is exact and the garbage collector has no work.
type crcCache struct {
	sets  [][spanWays]span
	hands []uint8 // of each set: where the search for a victim goes on
	locks [spanLocks]sync.Mutex
}

func newCRCCache(bytes int64) *crcCache {
	n := max(1, bytes/int64(unsafe.Sizeof([spanWays]span{})))
	return &crcCache{sets: make([][spanWays]span, n), hands: make([]uint8, n)}
}

func (c *crcCache) set(ref frame.ShardRef, index uint32) int {
	h := uint64(ref.Segment)*0x9e3779b97f4a7c15 + uint64(ref.Shard)*0xc2b2ae3d27d4eb4f + uint64(index)*0x165667b19e3779f9
	h ^= h >> 32
	return int(h % uint64(len(c.sets)))
}

func (p *span) is(ref frame.ShardRef, index uint32) bool {
	return p.segment == ref.Segment && p.index == index && p.shard == ref.Shard && p.generation == ref.Generation
}

// get copies a span out.
func (c *crcCache) get(ref frame.ShardRef, index uint32, crcs *[spanBlocks]uint32) bool {
	i := c.set(ref, index)
	lock := &c.locks[i%spanLocks]
	lock.Lock()
	defer lock.Unlock()
	for w := range c.sets[i] {
		if p := &c.sets[i][w]; p.is(ref, index) {
			p.used = true
			*crcs = p.crcs
			return true
		}
	}
	return false
}

// put stores a span in place of one that was not used lately.
func (c *crcCache) put(ref frame.ShardRef, index uint32, crcs *[spanBlocks]uint32) {
	i := c.set(ref, index)
	lock := &c.locks[i%spanLocks]
	lock.Lock()
	defer lock.Unlock()
	hand := c.hands[i]
	for c.sets[i][hand%spanWays].used {
		c.sets[i][hand%spanWays].used = false
		hand++
	}
	c.sets[i][hand%spanWays] = span{segment: ref.Segment, crcs: *crcs, index: index, generation: ref.Generation, shard: ref.Shard}
	c.hands[i] = (hand + 1) % spanWays
}

// cachedCRCs is rangeCRCs for a finalized shard.
func (s *Store) cachedCRCs(ref frame.ShardRef, g frame.ReadRange, dst []uint32) ([]uint32, error) {
	block, end := uint32(g.Offset/layout.BlockSize), uint32((g.Offset+layout.ShardOffset(g.Length))/layout.BlockSize)
	for block < end {
		index := block / spanBlocks
		var crcs [spanBlocks]uint32
		if !s.crcs.get(ref, index, &crcs) {
			if err := s.loadSpan(ref, index, &crcs); err != nil {
				return dst, err
			}
		}
		stop := min(end, (index+1)*spanBlocks)
		dst = append(dst, crcs[block-index*spanBlocks:stop-index*spanBlocks]...)
		block = stop
	}
	return dst, nil
}

func (s *Store) loadSpan(ref frame.ShardRef, index uint32, crcs *[spanBlocks]uint32) error {
	g := frame.ReadRange{Offset: layout.ShardOffset(index) * spanBlocks * layout.BlockSize, Length: spanBlocks * layout.BlockSize}
	list, err := s.rangeCRCs(nil, ref, g, make([]uint32, 0, spanBlocks))
	if err != nil {
		return err
	}
	copy(crcs[:], list)
	s.crcs.put(ref, index, crcs)
	return nil
}
