package state

import (
	"fmt"

	"github.com/tidwall/btree"

	"strake/internal/layout"
	"strake/internal/planted"
)

// SnapshotKind tells why a snapshot exists. Numbers are frozen.
type SnapshotKind uint8

// Kinds of snapshots.
const (
	PlainSnapshot     SnapshotKind = 0
	TagSnapshot       SnapshotKind = 1 // has a digest, and can be held
	AutomaticSnapshot SnapshotKind = 2 // what a volume was before a rollback, or what a clone was made of
)

// String gives the kind's name as the command line prints it.
func (k SnapshotKind) String() string {
	names := [...]string{"snapshot", "tag", "automatic"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Frozen is a volume's snapshot: what the volume was at Seq. Of one branch, Seq
// and Root never fall from one snapshot to the next.
type Frozen struct {
	ID     layout.SnapshotID `cbor:"1,keyasint"`
	Volume layout.VolumeID   `cbor:"2,keyasint"` // the branch that it was taken of
	Family layout.VolumeID   `cbor:"3,keyasint"` // in whose name space Name stands
	Name   string            `cbor:"4,keyasint"`
	Kind   SnapshotKind      `cbor:"5,keyasint,omitempty"`

	Seq       layout.Seq   `cbor:"6,keyasint,omitempty"` // flushed
	Epoch     layout.Epoch `cbor:"7,keyasint,omitempty"` // of the volume when it was taken
	Root      Root         `cbor:"8,keyasint"`           // the newest with covers <= Seq
	Cuts      []Cut        `cbor:"9,keyasint,omitempty"` // those between
	SizeBytes uint64       `cbor:"10,keyasint"`
	// The branch's segments with stripes above the root's covers, and none above
	// Seq alone, have ids in [First, Last].
	First layout.SegmentID `cbor:"11,keyasint,omitempty"`
	Last  layout.SegmentID `cbor:"12,keyasint,omitempty"`

	Removed bool     `cbor:"13,keyasint,omitempty"` // hidden; it goes when nothing stands on it any more
	Holds   []string `cbor:"14,keyasint,omitempty"` // who wants a tag kept, in order, at most MaxHolds
	AtUnix  uint64   `cbor:"15,keyasint,omitempty"` // the leader's clock, for display only
	// Digest is the content digest of a tag, once it was computed; Blocks are the
	// blocks that are not zero.
	Digest []byte `cbor:"16,keyasint,omitempty"`
	Blocks uint64 `cbor:"17,keyasint,omitempty"`
}

// shelf files the snapshots of branches in two orders: by seq, for what data
// segments are needed, and by root number, for what map segments are. Both rise
// with the id within a branch.
type shelf struct {
	bySeq, byRoot *btree.BTreeG[spot]
}

// spot is a snapshot's place in one order.
type spot struct {
	volume layout.VolumeID
	at     uint64
	id     layout.SnapshotID
}

func spotLess(a, b spot) bool {
	switch {
	case a.volume != b.volume:
		return a.volume < b.volume
	case a.at != b.at:
		return a.at < b.at
	}
	return a.id < b.id
}

func newShelf() shelf {
	return shelf{btree.NewBTreeGOptions(spotLess, btree.Options{NoLocks: true}), btree.NewBTreeGOptions(spotLess, btree.Options{NoLocks: true})}
}

func (x shelf) copy() shelf { return shelf{x.bySeq.IsoCopy(), x.byRoot.IsoCopy()} }

func (x shelf) put(s *Frozen) {
	x.bySeq.Set(spot{s.Volume, uint64(s.Seq), s.ID})
	x.byRoot.Set(spot{s.Volume, uint64(s.Root.Number), s.ID})
}

func (x shelf) drop(s *Frozen) {
	x.bySeq.Delete(spot{s.Volume, uint64(s.Seq), s.ID})
	x.byRoot.Delete(spot{s.Volume, uint64(s.Root.Number), s.ID})
}

// from gives the first snapshot of a branch at or after a place in one order, other
// than `but`; 0 when there is none.
func from(order *btree.BTreeG[spot], volume layout.VolumeID, at uint64, but layout.SnapshotID) (id layout.SnapshotID) {
	order.Ascend(spot{volume: volume, at: at}, func(s spot) bool {
		if s.volume == volume && s.id == but {
			return true
		}
		if s.volume == volume {
			id = s.id
		}
		return false
	})
	return id
}

// newest gives a branch's newest snapshot, nil when it has none; newestBut the newest
// other than one.
func (t *tables) newest(volume layout.VolumeID) *Frozen { return t.newestBut(volume, 0) }

func (t *tables) newestBut(volume layout.VolumeID, but layout.SnapshotID) (newest *Frozen) {
	t.shelf.bySeq.Descend(spot{volume: volume, at: ^uint64(0), id: ^layout.SnapshotID(0)}, func(s spot) bool {
		if s.volume == volume && s.id == but {
			return true
		}
		if s.volume == volume {
			newest, _ = t.frozen.Get(s.id)
		}
		return false
	})
	return newest
}

// needed tells whether anything names the segment: the head, unless it was
// purged, or a snapshot of its branch. Of a data segment a snapshot needs those
// that begin at or before its seq and were not retired when its root was
// recorded; the first in seq order that may is the one with the oldest root. Of
// a map segment it needs those in whose span of roots its own lies.
//
// Once a retired segment is needed no more, it never is again: a new snapshot's
// root is newer than the one that retired it.
func (t *tables) needed(s *Segment, v *Volume) bool {
	switch {
	case s.State == Dropped:
		return false
	case s.Retired == 0 && !v.Purged:
		return true
	}
	return t.neededBy(s) != nil
}

// neededBy gives a snapshot that needs the segment, nil when none does; neededBut one
// other than `but`.
func (t *tables) neededBy(s *Segment) *Frozen { return t.neededBut(s, 0) }

func (t *tables) neededBut(s *Segment, but layout.SnapshotID) *Frozen {
	if s.Map {
		f, _ := t.frozen.Get(from(t.shelf.byRoot, s.Volume, uint64(s.Born), but))
		if f != nil && (s.Retired == 0 || uint64(f.Root.Number) < s.Retired) {
			return f
		}
		return nil
	}
	first := s.Seal.First
	if planted.Is(planted.FreedWhileReachable) {
		first = s.Seal.Last
	}
	f, _ := t.frozen.Get(from(t.shelf.bySeq, s.Volume, uint64(first), but))
	if f != nil && (s.Retired == 0 || uint64(f.Root.Covers) < s.Retired) {
		return f
	}
	return nil
}

// putFrozen puts a copy.
func (t *tables) putFrozen(f *Frozen) {
	c := *f
	if old, ok := t.frozen.Get(f.ID); ok {
		t.unfileFrozen(old)
	}
	t.frozen.Set(f.ID, &c)
	t.shelf.put(&c)
	if c.Removed {
		return
	}
	t.frozenNames.Set(frozenKey(c.Family, c.Name), c.ID)
	t.ofFamily.add(uint64(c.Family), uint64(c.ID))
	if c.Kind == TagSnapshot && c.Digest == nil {
		t.undigested.add(all, uint64(c.ID))
	}
	if c.Digest != nil {
		t.byDigest.Set(digestKey(c.Digest, c.ID), c.ID)
	}
}

func (t *tables) unfileFrozen(f *Frozen) {
	t.shelf.drop(f)
	if f.Removed {
		return
	}
	t.frozenNames.Delete(frozenKey(f.Family, f.Name))
	t.ofFamily.remove(uint64(f.Family), uint64(f.ID))
	t.undigested.remove(all, uint64(f.ID))
	if f.Digest != nil {
		t.byDigest.Delete(digestKey(f.Digest, f.ID))
	}
}

// snapshotOf gives a copy of a snapshot's record, nil when there is none.
func (t *tables) snapshotOf(id layout.SnapshotID) *Frozen {
	f, ok := t.frozen.Get(id)
	if !ok {
		return nil
	}
	c := *f
	return &c
}

// frozenKey is a snapshot's place among the names of its family.
func frozenKey(family layout.VolumeID, name string) string {
	return fmt.Sprintf("%020d/%s", uint64(family), name)
}

// digestKey is a tag's place among digests.
func digestKey(digest []byte, id layout.SnapshotID) string {
	return string(digest) + fmt.Sprintf("%020d", uint64(id))
}
