package state

import (
	"encoding/binary"
	"math/bits"

	"github.com/tidwall/btree"
)

// index is an ordered set of (owner, member) pairs: the segments of a volume,
// of a device, the volumes of a session. It copies in O(1).
//
// Members are kept in runs of spanSize consecutive numbers, so that a pair
// costs one to four bytes instead of a tree entry. A run with few members is a
// sorted list of 16-bit offsets, one with many is a bitmap:
//
//	fewer than 256 members   2 bytes each, little-endian, ascending
//	256 and more             512 bytes, bit i of byte i/8 for offset i
//
// A run is a string: replaced, never changed, and without pointers inside.
type index struct{ runs *btree.BTreeG[run] }

type run struct {
	owner, span uint64
	members     string
}

const (
	spanBits    = 12
	spanSize    = 1 << spanBits
	bitmapBytes = spanSize / 8
	mostListed  = bitmapBytes/2 - 1 // members of a list
)

func newIndex() index {
	less := func(a, b run) bool { return a.owner < b.owner || a.owner == b.owner && a.span < b.span }
	return index{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

func (x index) copy() index { return index{x.runs.IsoCopy()} }

func (x index) add(owner, member uint64) {
	key := run{owner: owner, span: member >> spanBits}
	r, _ := x.runs.Get(key)
	set := expand(r.members)
	if set.has(member % spanSize) {
		return
	}
	set.put(member % spanSize)
	key.members = set.shrink()
	x.runs.Set(key)
}

func (x index) remove(owner, member uint64) {
	key := run{owner: owner, span: member >> spanBits}
	r, ok := x.runs.Get(key)
	if !ok {
		return
	}
	set := expand(r.members)
	set.drop(member % spanSize)
	if key.members = set.shrink(); key.members == "" {
		x.runs.Delete(key)
		return
	}
	x.runs.Set(key)
}

// ascend calls fn with the owner's members above after, in order, until fn
// returns false.
func (x index) ascend(owner, after uint64, fn func(member uint64) bool) {
	if after == ^uint64(0) {
		return
	}
	from := after + 1
	x.runs.Ascend(run{owner: owner, span: from >> spanBits}, func(r run) bool {
		if r.owner != owner {
			return false
		}
		set := expand(r.members)
		return set.each(func(offset uint64) bool {
			member := r.span<<spanBits | offset
			return member < from || fn(member)
		})
	})
}

// first gives the owner's lowest member, the highest number when it has none.
func (x index) first(owner uint64) uint64 {
	lowest := ^uint64(0)
	x.ascend(owner, 0, func(member uint64) bool { lowest = member; return false })
	return lowest
}

// count tells how many members the owner has.
func (x index) count(owner uint64) (n int) {
	x.runs.Ascend(run{owner: owner}, func(r run) bool {
		if r.owner != owner {
			return false
		}
		set := expand(r.members)
		for _, w := range set {
			n += bits.OnesCount64(w)
		}
		return true
	})
	return n
}

// owns tells whether the owner has any member.
func (x index) owns(owner uint64) bool {
	found := false
	x.ascend(owner, 0, func(uint64) bool { found = true; return false })
	return found
}

// bitmap is a run unpacked.
type bitmap [spanSize / 64]uint64

func expand(s string) (b bitmap) {
	if len(s) == bitmapBytes {
		for i := range b {
			b[i] = binary.LittleEndian.Uint64([]byte(s[8*i : 8*i+8]))
		}
		return b
	}
	for i := 0; i+1 < len(s); i += 2 {
		b.put(uint64(s[i]) | uint64(s[i+1])<<8)
	}
	return b
}

func (b *bitmap) has(i uint64) bool { return b[i/64]>>(i%64)&1 == 1 }
func (b *bitmap) put(i uint64)      { b[i/64] |= 1 << (i % 64) }
func (b *bitmap) drop(i uint64)     { b[i/64] &^= 1 << (i % 64) }

// each calls fn with the members in order; false when fn stopped it.
func (b *bitmap) each(fn func(uint64) bool) bool {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			if !fn(uint64(64*i + bits.TrailingZeros64(w))) {
				return false
			}
		}
	}
	return true
}

// shrink packs the run in the smaller form.
func (b *bitmap) shrink() string {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	out := make([]byte, 0, min(2*n, bitmapBytes))
	if n > mostListed {
		for _, w := range b {
			out = binary.LittleEndian.AppendUint64(out, w)
		}
		return string(out)
	}
	b.each(func(i uint64) bool { out = append(out, byte(i), byte(i>>8)); return true })
	return string(out)
}
