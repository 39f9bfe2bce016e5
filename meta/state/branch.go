package state

import (
	"fmt"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
)

// A branch is a volume's record that begins at a snapshot, its origin, which it
// pins: its map names the origin's segments and never retires them. It has its
// own segments, roots and epochs, which go on from the origin's, so that of all
// stripes that its log holds the later one has the higher seq.

// FamilyID is the volume whose snapshots' names this one shares.
func (v *Volume) FamilyID() layout.VolumeID { return v.family() }

// family is the volume whose snapshots' names this one shares: a rollback makes
// another record, with the same name and the same snapshots.
func (v *Volume) family() layout.VolumeID {
	if v.Family != 0 {
		return v.Family
	}
	return v.ID
}

// branch makes the record of a branch from a snapshot; the caller names it.
func (t *tables) branch(f *Frozen, epoch layout.Epoch) *Volume {
	parent := t.volume(f.Volume)
	t.last.Volume++
	v := &Volume{ID: t.last.Volume, SizeBytes: f.SizeBytes, Geometry: parent.Geometry, Class: parent.Class,
		Epoch: epoch, Closed: true, LastSeq: f.Seq, Root: f.Root, Cuts: f.Cuts, Origin: f.ID}
	v.Root.Own, v.Root.Pages = 0, 0 // all of it is its ancestors'
	if f.Seq > 0 {
		v.addCut(Cut{Before: epoch + 1, Seq: f.Seq})
	}
	return v
}

func (c CloneVolume) check() error {
	if err := checkFrozenRef("clone volume", c.Volume, c.Snapshot); err != nil {
		return err
	}
	if err := layout.CheckName("tenant", or(c.Tenant, layout.DefaultTenant)); err != nil {
		return errs.As(err, errs.InvalidArgument, "clone volume")
	}
	return errs.As(layout.CheckName("volume", c.Name), errs.InvalidArgument, "clone volume")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c CloneVolume) apply(t *tables, r *Result) error {
	f, err := t.resolveFrozen("clone volume", c.Volume, c.Snapshot)
	if err != nil {
		return err
	}
	c.Tenant = or(c.Tenant, layout.DefaultTenant)
	if id, taken := t.names.Get(nameKey(c.Tenant, c.Name)); taken {
		return errs.New(errs.AlreadyExists, "clone volume to "+pathOf(c.Tenant, c.Name), "the name belongs to volume %d", id).WithHint("choose another name")
	}
	v := t.branch(f, f.Epoch)
	v.Tenant, v.Name = c.Tenant, c.Name
	t.putVolume(v)
	r.Volume = v.ID
	r.emit(VolumeCloned{Volume: v.ID, Snapshot: f.ID})
	return nil
}

func (c RollbackVolume) check() error {
	return checkFrozenRef("roll back volume", c.Volume, c.Snapshot)
}

// apply lets a branch from the snapshot take the volume's name. What the volume
// was stays as an automatic snapshot of its old branch.
func (c RollbackVolume) apply(t *tables, r *Result) error {
	f, err := t.resolveFrozen("roll back volume", c.Volume, c.Snapshot)
	if err != nil {
		return err
	}
	old, err := t.resolve("roll back volume", c.Volume)
	if err != nil {
		return err
	}
	op := "roll back volume " + old.path()
	if old.Removed {
		return errs.New(errs.NotFound, op, "the volume is removed").WithHint("bring it back with `strake volume undelete`")
	}
	name := fmt.Sprintf("before-rollback-%d", t.last.Snapshot+1)
	switch err := t.nameFree(op, old, name); {
	case errs.KindOf(err) == errs.AlreadyExists:
		return errs.New(errs.AlreadyExists, op, "what the volume is now would be kept as %s, and there is a snapshot of that name", name).
			WithHint("remove that snapshot, or take another one first: then the number is the next")
	case err != nil:
		return err
	}
	// Last what the caller can help: whoever shuts a writer out must not find that in vain.
	switch {
	case old.Holder != 0:
		return t.leaseHeld(op, old)
	case old.Unsealed > 0:
		return errs.New(errs.Busy, op, "its writer is gone and it is not recovered yet").WithHint("repeat in a while")
	}
	kept := t.freeze(old, name, AutomaticSnapshot, old.LastSeq, c.AtUnix, r)
	v := t.branch(f, max(old.Epoch, f.Epoch))
	v.Tenant, v.Name, v.Class, v.Family = old.Tenant, old.Name, old.Class, old.family()
	old.Removed, old.Purged, old.Undecided = true, true, ""
	t.putVolume(old)
	t.putVolume(v)
	r.Volume, r.Snapshot = v.ID, kept.ID
	r.emit(VolumeRolledBack{Volume: v.ID, Old: old.ID, Snapshot: f.ID, Kept: kept.ID})
	return nil
}

func (c PinSnapshot) check() error {
	if c.Snapshot != 0 {
		return nil
	}
	return checkFrozenRef("open snapshot", c.Volume, c.Name)
}

// apply lets a session read a snapshot for as long as it wants, also when the
// snapshot is removed meanwhile.
func (c PinSnapshot) apply(t *tables, r *Result) error {
	op := "open snapshot " + c.Name
	f := t.snapshotOf(c.Snapshot)
	if c.Snapshot == 0 {
		var err error
		if f, err = t.resolveFrozen("open snapshot", c.Volume, c.Name); err != nil {
			return err
		}
	}
	if f == nil || f.Removed {
		return errs.New(errs.NotFound, op, "there is no snapshot %d", c.Snapshot).WithHint("it was removed meanwhile; `strake snapshot ls` lists those that stand")
	}
	s, ok := t.sessions.Get(c.Session)
	if !ok {
		return errs.New(errs.LeaseLost, op, "session %d is gone", c.Session).WithHint("open a new session")
	}
	r.Snapshot, r.Volume = f.ID, f.Volume
	at, has := slices.BinarySearch(s.Pins, f.ID)
	switch {
	case has:
		r.Repeat = true
		return nil
	case len(s.Pins) == MaxPins:
		return errs.New(errs.Overloaded, op, "the session has %d snapshots open, at most %d are allowed", MaxPins, MaxPins).WithHint("close some")
	}
	changed := *s
	changed.Pins = slices.Insert(slices.Clone(s.Pins), at, f.ID)
	t.putSession(&changed)
	return nil
}

func (c UnpinSnapshot) check() error { return nil }

func (c UnpinSnapshot) apply(t *tables, r *Result) error {
	s, ok := t.sessions.Get(c.Session)
	if !ok {
		r.Repeat = true
		return nil
	}
	at, has := slices.BinarySearch(s.Pins, c.Snapshot)
	if !has {
		r.Repeat = true
		return nil
	}
	changed := *s
	changed.Pins = slices.Delete(slices.Clone(s.Pins), at, at+1)
	t.putSession(&changed)
	t.unpinned(c.Snapshot, r)
	return nil
}

// unpinned ends a removed snapshot whose last reader this was.
func (t *tables) unpinned(id layout.SnapshotID, r *Result) {
	if f := t.snapshotOf(id); f != nil {
		t.dropUnused(f, r)
	}
}

// putSession and dropSession are the only functions that change sessions.
func (t *tables) putSession(s *Session) {
	if old, ok := t.sessions.Get(s.ID); ok {
		t.unpinAll(old)
	}
	t.sessions.Set(s.ID, s)
	for _, id := range s.Pins {
		t.pinned.add(uint64(id), uint64(s.ID))
	}
}

func (t *tables) dropSession(s *Session, r *Result) {
	t.sessions.Delete(s.ID)
	t.unpinAll(s)
	for _, id := range s.Pins {
		t.unpinned(id, r)
	}
}

func (t *tables) unpinAll(s *Session) {
	for _, id := range s.Pins {
		t.pinned.remove(uint64(id), uint64(s.ID))
	}
}

// ancestors gives what a branch that began at a snapshot needs of its ancestors
// to replay the log after covers, nearest first. Most need nothing: their root
// is their own.
func (t *tables) ancestors(origin layout.SnapshotID, covers layout.Seq) (list []Ancestor) {
	for origin != 0 {
		f, _ := t.frozen.Get(origin)
		if f.Seq <= covers {
			break
		}
		list = append(list, t.ancestor(f, covers))
		v, _ := t.volumes.Get(f.Volume)
		origin = v.Origin
	}
	return list
}

// ancestor gives the segments of a snapshot's branch that hold stripes above
// covers and at or below its seq.
func (t *tables) ancestor(f *Frozen, covers layout.Seq) Ancestor {
	a := Ancestor{Volume: f.Volume, Limit: f.Seq}
	t.byVolume.ascend(uint64(f.Volume), uint64(max(f.First, 1))-1, func(id uint64) bool {
		if id > uint64(f.Last) {
			return false
		}
		s := t.segment(layout.SegmentID(id))
		switch {
		case s.Map || s.State == Dropped || s.State == Allocated:
		case s.State != Open && (s.Seal.Last <= covers || s.Seal.First > f.Seq || s.Retired != 0 && s.Retired <= uint64(f.Root.Covers)):
		default:
			a.Segments = append(a.Segments, *s)
		}
		return true
	})
	return a
}

// openFrozen gives what a reader of a snapshot needs: as of a branch that began
// at it.
func (t *tables) openFrozen(f *Frozen) *OpenVolume {
	v := t.volume(f.Volume)
	o := &OpenVolume{Volume: *v, Cuts: f.Cuts, Clean: true, LastSeq: f.Seq}
	o.Volume.Root, o.Volume.SizeBytes, o.Volume.Holder = f.Root, f.SizeBytes, 0
	o.Ancestors = t.ancestors(f.ID, f.Root.Covers)
	return o
}
