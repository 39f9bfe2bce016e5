package state

import "strake/internal/layout"

// What snapshots hold. Exactly known are segments that the head no longer names; of
// those that it still names the state knows what they store, and of the volume as a
// whole how much of that is garbage. So what a snapshot keeps from being cleaned is an
// estimate, in the proportion in which its segments have part in the whole.

// HeldBySnapshots is about what a volume's snapshots keep from coming back, parity
// included, those that are hidden too: what they alone need, and what cleaning would
// give back but for them. It reads all of the volume's segments.
func (v *View) HeldBySnapshots(vol *Volume) (bytes uint64) {
	for _, id := range v.records(vol) {
		v.eachRetired(id, func(s *Segment, needed *Frozen) {
			if needed != nil {
				bytes += s.Seal.storedBytes()
			}
		})
	}
	if newest := v.t.newest(vol.ID); newest != nil {
		bytes += v.uncleaned(vol, 0, newest.Seq)
	}
	return bytes
}

// Frees is what removing a snapshot gives back at once, and about what cleaning can
// give back then, parity included. It reads all of its branch's segments.
func (v *View) Frees(f *Frozen) (now, later uint64) {
	if v.t.branches.owns(uint64(f.ID)) || v.t.pinned.owns(uint64(f.ID)) {
		return 0, 0
	}
	now = v.Holds(f)
	newest, of := v.t.newest(f.Volume), layout.Seq(0)
	vol, ok := v.t.volumes.Get(f.Volume)
	if !ok || vol.Purged || newest == nil || newest.ID != f.ID {
		return now, 0 // what it has below a newer one can't be cleaned for that one
	}
	if before := v.t.newestBut(f.Volume, f.ID); before != nil {
		of = before.Seq
	}
	return now, v.uncleaned(vol, of, f.Seq)
}

// Holds is what no head and no other snapshot of its branch needs of a snapshot, parity
// included, whoever stands on it. It reads all of the branch's retired segments.
func (v *View) Holds(f *Frozen) (bytes uint64) {
	v.eachRetired(f.Volume, func(s *Segment, needed *Frozen) {
		if needed != nil && v.t.neededBut(s, f.ID) == nil {
			bytes += s.Seal.storedBytes()
		}
	})
	return bytes
}

// eachRetired calls fn with the segments that the head does not need and a
// snapshot that needs them, if any.
func (v *View) eachRetired(id layout.VolumeID, fn func(s *Segment, needed *Frozen)) {
	list := v.t.retired
	if vol, _ := v.t.volumes.Get(id); vol != nil && vol.Purged {
		list = v.t.byVolume
	}
	list.ascend(uint64(id), 0, func(m uint64) bool {
		if s := v.t.segment(layout.SegmentID(m)); s.State == Sealed || s.State == Finalized {
			fn(s, v.t.neededBy(s))
		}
		return true
	})
}

// uncleaned is about how much garbage lies in the segments that the head names and that
// begin above one seq and at or below another: their part of the garbage that the newest
// root's counts tell of. 0 before anybody counted.
func (v *View) uncleaned(vol *Volume, above, upTo layout.Seq) uint64 {
	if !vol.Counted() {
		return 0
	}
	var stored, within uint64
	v.t.byVolume.ascend(uint64(vol.ID), 0, func(m uint64) bool {
		s := v.t.segment(layout.SegmentID(m))
		switch {
		case s.Retired != 0 || s.State != Sealed && s.State != Finalized:
		case s.Map:
			stored += s.Seal.storedBytes()
		case s.Seal.First <= vol.Root.Covers: // else the root knows nothing of it
			stored += s.Seal.storedBytes()
			if s.Seal.First > above && s.Seal.First <= upTo {
				within += s.Seal.storedBytes()
			}
		}
		return true
	})
	if stored == 0 {
		return 0
	}
	garbage := stored - min(stored, vol.needs())
	return uint64(float64(garbage) * float64(within) / float64(stored))
}

// needs is what the blocks that the newest root counts take in full stripes, in bytes
// on all shards.
func (v *Volume) needs() uint64 {
	blocks := layout.BlockCount(v.Root.Own + v.Root.Pages)
	return uint64(blocks.Bytes()) / uint64(v.Geometry.K) * uint64(v.Geometry.Shards())
}

// records are the records of a volume as people see it: its own, and those that
// rollbacks made of it and whose snapshots stand, hidden ones too.
func (v *View) records(vol *Volume) []layout.VolumeID {
	list := []layout.VolumeID{vol.ID}
	if vol.Family == 0 {
		return list // never rolled back
	}
	seen := map[layout.VolumeID]bool{vol.ID: true}
	add := func(id layout.SnapshotID) (origin layout.SnapshotID) {
		f, ok := v.t.frozen.Get(id)
		if !ok || f.Family != vol.Family {
			return 0
		}
		of, ok := v.t.volumes.Get(f.Volume)
		if !ok {
			return 0
		}
		if !seen[of.ID] {
			seen[of.ID] = true
			list = append(list, of.ID)
		}
		return of.Origin
	}
	for origin := vol.Origin; origin != 0; { // hidden snapshots too
		origin = add(origin)
	}
	v.t.ofFamily.ascend(uint64(vol.Family), 0, func(id uint64) bool { add(layout.SnapshotID(id)); return true })
	return list
}
