package layout

import (
	"fmt"
	"math/bits"
)

// Geometry is a segment's shape: K data shards and M parity shards,
// 1 <= K <= 16, 1 <= M <= 4.
type Geometry struct {
	K, M uint8
}

// Shards is k+m.
func (g Geometry) Shards() int { return int(g.K) + int(g.M) }

// String gives "k+m".
func (g Geometry) String() string { return fmt.Sprintf("%d+%d", g.K, g.M) }

// Valid tells whether both figures are in range.
func (g Geometry) Valid() bool {
	return g.K >= 1 && g.K <= MaxData && g.M >= 1 && g.M <= MaxParity
}

// IsParity tells whether shard s holds parity.
func (g Geometry) IsParity(s ShardIndex) bool { return uint8(s) >= g.K }

// ParityMask has the bit of every parity shard set.
func (g Geometry) ParityMask() Mask { return (1<<g.M - 1) << g.K }

// DataMask has the bit of every data shard set.
func (g Geometry) DataMask() Mask { return 1<<g.K - 1 }

// Mask is a set of shards of one segment; bit i stands for shard i.
type Mask uint32

// Has tells whether s is in the set.
func (m Mask) Has(s ShardIndex) bool { return m>>s&1 == 1 }

// With adds s to the set.
func (m Mask) With(s ShardIndex) Mask { return m | 1<<s }

// Without removes s from the set.
func (m Mask) Without(s ShardIndex) Mask { return m &^ (1 << s) }

// Count is the number of shards in the set.
func (m Mask) Count() int { return bits.OnesCount32(uint32(m)) }

// Nth gives the n-th shard of the set in ascending order, counted from 0.
// ok is false when the set has no more than n members.
func (m Mask) Nth(n int) (s ShardIndex, ok bool) {
	for ; m != 0; m &= m - 1 {
		if n == 0 {
			return ShardIndex(bits.TrailingZeros32(uint32(m))), true
		}
		n--
	}
	return 0, false
}

// Rank counts the members below s.
func (m Mask) Rank(s ShardIndex) int { return (m & (1<<s - 1)).Count() }

// Shape is how one stripe lies in its segment: which data shards take part and
// how many bytes each participant holds. A stripe without payload (discard,
// write-zeroes) has Unit 0 and one data shard.
type Shape struct {
	Unit uint32 // bytes per participant; a multiple of BlockSize
	Data Mask   // data shards that hold bytes; never empty
}

// ShapeFor sizes a stripe of n payload blocks (0 <= n <= k x MaxUnit/BlockSize
// for a stripe that the builder cuts; more for one that moved to a narrower
// segment). The unit is the payload over k, rounded up to whole blocks; only
// as many data shards take part as hold bytes. They start at seq mod k, so
// that narrow stripes spread.
func (g Geometry) ShapeFor(n BlockCount, seq Seq) Shape {
	k := BlockCount(g.K)
	unitBlocks := (n + k - 1) / k
	units := BlockCount(1)
	if unitBlocks > 0 {
		units = (n + unitBlocks - 1) / unitBlocks
	}
	start := BlockCount(seq) % k
	var data Mask
	for i := BlockCount(0); i < units; i++ {
		data = data.With(ShardIndex((start + i) % k))
	}
	return Shape{Unit: uint32(unitBlocks * BlockSize), Data: data}
}

// Participants are the shards that store the stripe's header: its data shards
// and every parity shard.
func (g Geometry) Participants(s Shape) Mask { return s.Data | g.ParityMask() }

// UnitBlocks is the unit in blocks.
func (s Shape) UnitBlocks() BlockCount { return BlockCount(s.Unit / BlockSize) }

// DataBytes is what the data units take together, the padding of the last included.
func (s Shape) DataBytes() uint64 { return uint64(s.Unit) * uint64(s.Data.Count()) }

// Locate gives the data shard that holds payload block i of a stripe and the
// block's index in that shard's unit. Payload fills the data shards of the
// mask in ascending order. i must be below UnitBlocks x Data.Count().
func (s Shape) Locate(i BlockCount) (shard ShardIndex, blockInUnit BlockCount) {
	shard, _ = s.Data.Nth(int(i / s.UnitBlocks()))
	return shard, i % s.UnitBlocks()
}
