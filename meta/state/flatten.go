package state

import "strake/internal/layout"

// FlattenVolume wants a branch made independent of its origin, or, with Stop, no
// more. Whoever holds its lease next copies what it still names of its ancestors;
// the root that says so (RecordRoot.Flat) ends the wish.
type FlattenVolume struct {
	ID     CommandID `cbor:"1,keyasint,omitempty"`
	Volume VolumeRef `cbor:"2,keyasint"`
	Stop   bool      `cbor:"3,keyasint,omitempty"`
}

// Type, CommandID and request: see Command.
func (c FlattenVolume) Type() Type           { return TypeFlattenVolume }
func (c FlattenVolume) CommandID() CommandID { return c.ID }
func (c FlattenVolume) request() Command     { return c }
func (c FlattenVolume) check() error         { return c.Volume.check("flatten volume") }

// apply leaves a volume alone that names nothing of another.
func (c FlattenVolume) apply(t *tables, r *Result) error {
	v, err := t.resolve("flatten volume", c.Volume)
	if err != nil {
		return err
	}
	r.Volume = v.ID
	want := !c.Stop && v.Origin != 0 && v.Flat == 0
	if v.Flattening == want {
		r.Repeat = true
		return nil
	}
	v.Flattening = want
	t.putVolume(v)
	return nil
}

// FrozenSeq is the highest seq that a snapshot of a volume's branch holds, a hidden
// one too; 0: there is none. A segment that begins at or before it is needed,
// whatever the head names.
func (v *View) FrozenSeq(id layout.VolumeID) layout.Seq {
	if f := v.t.newest(id); f != nil {
		return f.Seq
	}
	return 0
}

// Outlived are the seqs of the newest snapshot, and of the newest tag, of a branch that
// are known to have been removed as the oldest that there was; 0: none is.
type Outlived struct{ Any, Tag layout.Seq }

// HeldOf says what the snapshots of a volume's branch hold. What was outlived counts as
// long as what stands, hidden ones too, is newer. A tag is made to last: while one is
// the oldest only tags that went before it tell that it will go, and nothing does while
// somebody holds it.
func (v *View) HeldOf(id layout.VolumeID, known Outlived) layout.Held {
	held := layout.Held{Newest: v.FrozenSeq(id), Outlived: known.Any}
	oldest, ok := v.t.frozen.Get(from(v.t.shelf.bySeq, id, 0, 0))
	if !ok {
		return held
	}
	if oldest.Kind == TagSnapshot {
		held.Outlived = known.Tag
	}
	if len(oldest.Holds) > 0 || oldest.Seq <= held.Outlived {
		held.Outlived = 0
	}
	return held
}

// Oldest tells whether all other snapshots of its branch, hidden ones too, are newer
// than one that stands or was removed.
func (v *View) Oldest(f *Frozen) bool {
	first, ok := v.t.frozen.Get(from(v.t.shelf.bySeq, f.Volume, 0, f.ID))
	return !ok || first.Seq > f.Seq
}

// Garbage is about what cleaning a volume would give back, in bytes on all shards:
// what its own segments store beyond what its newest root's live blocks need in full
// stripes. It knows neither what was overwritten since nor what snapshots need.
// 0 before somebody counted.
func (v *Volume) Garbage() uint64 {
	if !v.Counted() {
		return 0
	}
	return v.StoredBytes - min(v.StoredBytes, v.RetiredBytes+v.needs())
}

// Counted tells whether the volume has had a root of its own, whose writer counted
// live blocks: every root has a page.
func (v *Volume) Counted() bool { return v.Root.Pages > 0 }

// StoredByFamily is what the sealed segments of a volume take, and of the records
// that rollbacks made of it, whose snapshots stand: the volume as people see it.
func (v *View) StoredByFamily(vol *Volume) (bytes uint64) {
	for _, id := range v.records(vol) {
		if of, ok := v.t.volumes.Get(id); ok {
			bytes += of.StoredBytes
		}
	}
	return bytes
}

// Space is what volumes hold, in bytes. Data that a clone shares counts where it lies.
type Space struct {
	Live      uint64 // as of the newest roots, parity not counted
	Stored    uint64 // in sealed segments of volumes whose live data was counted
	Garbage   uint64 // of these
	Uncounted uint64 // in sealed segments of volumes that had no root yet
	Removed   uint64 // in sealed segments of volumes that were removed: kept for undelete, or on their way out
}

// Space adds up what volumes hold.
func (v *View) Space() (s Space) {
	v.t.volumes.Scan(func(_ layout.VolumeID, vol *Volume) bool {
		switch {
		case vol.Removed || vol.Purged:
			s.Removed += vol.StoredBytes
		case vol.Counted():
			s.Live, s.Stored, s.Garbage = s.Live+vol.Root.Own*layout.BlockSize, s.Stored+vol.StoredBytes, s.Garbage+vol.Garbage()
		default:
			s.Uncounted += vol.StoredBytes
		}
		return true
	})
	return s
}
