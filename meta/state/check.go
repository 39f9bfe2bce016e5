package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Check verifies the invariants of the package comment and names the one that
// broke. It reads everything; it is for tests, and for a server that doubts
// its memory.
func (v *View) Check() error {
	for _, check := range []func(*tables) error{checkIDs, checkServers, checkVolumes, checkSegments, checkFrozen, checkDerived, checkQoS} {
		if err := check(v.t); err != nil {
			return err
		}
	}
	return nil
}

func broken(format string, args ...any) error {
	return errs.New(errs.Internal, "check state", format, args...).
		WithHint("this is a bug: stop this server and keep its log")
}

func checkIDs(t *tables) error {
	server, _, _ := t.servers.Max()
	device, _, _ := t.devices.Max()
	session, _, _ := t.sessions.Max()
	volume, _, _ := t.volumes.Max()
	segment, _, _ := t.segments.Max()
	snapshot, _, _ := t.frozen.Max()
	if snapshot > t.last.Snapshot || server > t.last.Server || device > t.last.Device || session > t.last.Session || volume > t.last.Volume || segment > t.last.Segment {
		return broken("I1: an id lies beyond the highest handed out: %+v", t.last)
	}
	if t.recent.Len() > MaxRecent || t.recent.Len() != t.recentOrder.Len() {
		return broken("I9: %d commands remembered, %d in order", t.recent.Len(), t.recentOrder.Len())
	}
	return nil
}

func checkServers(t *tables) (err error) {
	listed := 0
	t.servers.Scan(func(id layout.ServerID, s *Server) bool {
		for _, d := range s.Devices {
			if dev, ok := t.devices.Get(d); !ok || dev.Server != id {
				err = broken("I2: server %d lists device %d, which is not its own", id, d)
			}
			listed++
		}
		return err == nil
	})
	if err == nil && listed != t.devices.Len() {
		err = broken("I2: %d devices, %d listed by servers", t.devices.Len(), listed)
	}
	return err
}

func checkVolumes(t *tables) (err error) {
	t.volumes.Scan(func(_ layout.VolumeID, v *Volume) bool {
		if _, ok := t.sessions.Get(v.Holder); v.Holder != 0 && !ok {
			err = broken("I3: volume %d is held by session %d, which is gone", v.ID, v.Holder)
			return false
		}
		err = v.check()
		return err == nil
	})
	return err
}

// check is what holds of a volume by itself.
func (v *Volume) check() error {
	switch {
	case layout.CheckName("volume", v.Name) != nil || layout.CheckName("tenant", v.Tenant) != nil || !v.Geometry.Valid() || checkSize("check", v.SizeBytes) != nil:
		return broken("I3: volume %d: name %q/%q, geometry %v, size %d", v.ID, v.Tenant, v.Name, v.Geometry, v.SizeBytes)
	case v.Purged && !v.Removed || v.Purged && v.Holder != 0 || v.Epoch == 0 && (v.Holder != 0 || !v.Closed):
		return broken("I3: volume %d: removed %v, purged %v, epoch %d, holder %d, closed %v", v.ID, v.Removed, v.Purged, v.Epoch, v.Holder, v.Closed)
	case v.Undecided != "" && v.Closed || len(v.Undecided) > MaxUndecided:
		return broken("I3: volume %d is undecided though its epochs are closed", v.ID)
	case v.Root.Covers > v.LastSeq || len(v.Root.Page) > MaxRootPage || (v.Root.Number == 0) != (len(v.Root.Page) == 0):
		return broken("I4: volume %d: root %d covers %d of %d", v.ID, v.Root.Number, v.Root.Covers, v.LastSeq)
	case len(v.Cuts) > MaxCuts || v.LastCut() > v.LastSeq:
		return broken("I5: volume %d: %d cuts up to %d of %d", v.ID, len(v.Cuts), v.LastCut(), v.LastSeq)
	}
	for i, c := range v.Cuts {
		if c.Before > v.Epoch+1 || i > 0 && (c.Before <= v.Cuts[i-1].Before || c.Seq <= v.Cuts[i-1].Seq) {
			return broken("I5: volume %d: cut %d (before epoch %d, seq %d) does not follow the one before", v.ID, i, c.Before, c.Seq)
		}
	}
	return nil
}

// checkSegment is what holds between a segment and its volume.
func (v *Volume) checkSegment(s *Segment) error {
	if s.Epoch > v.Epoch || s.Geometry.M != v.Geometry.M || s.Geometry.K > v.Geometry.K {
		return broken("I6: segment %d of epoch %d, %v, in volume %d at epoch %d, %v", s.ID, s.Epoch, s.Geometry, v.ID, v.Epoch, v.Geometry)
	}
	if s.Unsealed() && s.Epoch < v.Epoch && (v.Closed || s.Map || s.State == Allocated) {
		return broken("I8: segment %d (%v) of epoch %d outlives its epoch in volume %d at epoch %d", s.ID, s.State, s.Epoch, v.ID, v.Epoch)
	}
	if s.Map || s.Unsealed() || s.State == Dropped {
		return nil
	}
	if s.Seal.Last > v.LastSeq || s.Retired > uint64(v.Root.Covers) || s.Retired != 0 && s.Retired < uint64(s.Seal.Last) {
		return broken("I7: segment %d ends at %d, retired at %d, in volume %d at seq %d", s.ID, s.Seal.Last, s.Retired, v.ID, v.LastSeq)
	}
	for _, c := range v.Cuts {
		if s.Epoch < c.Before && s.Seal.Last > c.Seq {
			return broken("I5: segment %d of epoch %d ends at %d, beyond the cut at %d before epoch %d", s.ID, s.Epoch, s.Seal.Last, c.Seq, c.Before)
		}
	}
	return nil
}

// checkNeeded judges in the slow and obvious way what a segment is needed for.
func (t *tables) checkNeeded(s *Segment, v *Volume) error {
	want := s.State != Dropped && s.Retired == 0 && !v.Purged
	t.frozen.Scan(func(_ layout.SnapshotID, f *Frozen) bool {
		switch {
		case f.Volume != v.ID || s.State == Dropped:
		case s.Map:
			want = want || s.Born <= f.Root.Number && (s.Retired == 0 || uint64(f.Root.Number) < s.Retired)
		default:
			want = want || s.Seal.First <= f.Seq && (s.Retired == 0 || uint64(f.Root.Covers) < s.Retired)
		}
		return true
	})
	if got := t.needed(s, v); got != want {
		return broken("I13: segment %d is needed: %v, and taken for needed: %v", s.ID, want, got)
	}
	return nil
}

func checkSegments(t *tables) (err error) {
	t.segments.Scan(func(id layout.SegmentID, record string) bool {
		var s *Segment
		if s, err = unpack(id, record); err != nil {
			err = broken("I6: segment %d: %v", id, err)
			return false
		}
		v, ok := t.volumes.Get(s.Volume)
		if !ok {
			err = broken("I6: segment %d of volume %d, which is gone", id, s.Volume)
			return false
		}
		if err = v.checkSegment(s); err == nil {
			err = t.checkNeeded(s, v)
		}
		for _, p := range s.Placements {
			if _, ok := t.devices.Get(p.Device); !ok && err == nil {
				err = broken("I6: segment %d on device %d, which is not there", id, p.Device)
			}
		}
		return err == nil
	})
	return err
}

// checkDerived builds every derived table again and compares.
func checkDerived(t *tables) (err error) {
	w := newTables()
	w.cell, w.last, w.applied = t.cell, t.last, t.applied
	volumes := make(map[layout.VolumeID]*Volume)
	t.volumes.Scan(func(id layout.VolumeID, v *Volume) bool {
		c := *v
		c.Segments, c.Unsealed, c.StoredBytes, c.RetiredBytes, c.ReservedBytes = 0, 0, 0, 0, 0
		volumes[id] = &c
		return true
	})
	t.frozen.Scan(func(_ layout.SnapshotID, f *Frozen) bool { w.putFrozen(f); return true })
	t.sessions.Scan(func(_ layout.SessionID, s *Session) bool { w.putSession(s); return true })
	t.segments.Scan(func(id layout.SegmentID, _ string) bool {
		s := t.segment(id)
		w.putSegment(s, volumes[s.Volume])
		return true
	})
	t.volumes.Scan(func(id layout.VolumeID, v *Volume) bool {
		c := volumes[id]
		w.putVolume(c)
		if c.Segments != v.Segments || c.Unsealed != v.Unsealed || c.StoredBytes != v.StoredBytes || c.RetiredBytes != v.RetiredBytes || c.ReservedBytes != v.ReservedBytes {
			err = broken("I10: volume %d counts %d segments, %d unsealed, %d and %d bytes; it has %d, %d, %d, %d", id,
				v.Segments, v.Unsealed, v.StoredBytes, v.ReservedBytes, c.Segments, c.Unsealed, c.StoredBytes, c.ReservedBytes)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if w.frozenNames.Len() != t.frozenNames.Len() || w.byDigest.Len() != t.byDigest.Len() || w.shelf.bySeq.Len() != t.shelf.bySeq.Len() || w.shelf.byRoot.Len() != t.shelf.byRoot.Len() {
		return broken("I10: %d names and %d places of snapshots; there are %d and %d", t.frozenNames.Len(), t.shelf.bySeq.Len(), w.frozenNames.Len(), w.shelf.bySeq.Len())
	}
	if w.dropped != t.dropped || w.names.Len() != t.names.Len() || w.removedNames.Len() != t.removedNames.Len() {
		return broken("I10: %d dropped, %d names, %d removed names; there are %d, %d, %d",
			t.dropped, t.names.Len(), t.removedNames.Len(), w.dropped, w.names.Len(), w.removedNames.Len())
	}
	names := [...]string{"volume", "device", "unsealed", "replayed", "held", "allocated", "unfinalized", "deletable", "lost", "purged", "orphaned",
		"retired", "freeing", "family", "branches", "pinned", "undigested"}
	t = t.settled()
	for i, x := range t.indexes() {
		if !x.equal(*w.indexes()[i]) {
			return broken("I10: the index %q differs from its records", names[i])
		}
	}
	return nil
}

func (x index) equal(o index) bool {
	if x.runs.Len() != o.runs.Len() {
		return false
	}
	same := true
	x.runs.Scan(func(r run) bool {
		q, ok := o.runs.Get(r)
		same = ok && q.members == r.members
		return same
	})
	return same
}

// settled gives the tables as they are once FreeSegments is through with all
// volumes: until then some segments are filed as needed that are not.
func (t *tables) settled() *tables {
	t = t.clone()
	var all []layout.SegmentID
	t.segments.Scan(func(id layout.SegmentID, _ string) bool { all = append(all, id); return true })
	for _, id := range all {
		s := t.segment(id)
		if v := t.volume(s.Volume); v.Freeing || v.Purged {
			t.refile(s, v)
		}
	}
	return t
}

// checkFrozen is what holds of snapshots, and of what stands on them.
func checkFrozen(t *tables) (err error) {
	last := map[layout.VolumeID]*Frozen{}
	t.frozen.Scan(func(id layout.SnapshotID, f *Frozen) bool {
		v, ok := t.volumes.Get(f.Volume)
		was := last[f.Volume]
		last[f.Volume] = f
		switch {
		case f.check() != nil:
			err = f.check()
		case !ok || v.family() != f.Family || f.Seq > v.LastSeq && v.Unsealed == 0 || f.Epoch > v.Epoch || f.Root.Number > v.Root.Number:
			err = broken("I12: snapshot %d of volume %d is none of its history", id, f.Volume)
		case was != nil && (was.Seq > f.Seq || was.Root.Number > f.Root.Number || was.Root.Covers > f.Root.Covers):
			err = broken("I12: snapshot %d lies before snapshot %d", id, was.ID)
		case f.Removed && !t.branches.owns(uint64(id)) && !t.pinned.owns(uint64(id)):
			err = broken("I12: nothing stands on snapshot %d, which is removed", id)
		}
		return err == nil
	})
	t.volumes.Scan(func(id layout.VolumeID, v *Volume) bool {
		if f, ok := t.frozen.Get(v.Origin); err == nil && v.Origin != 0 && (!ok || f.Seq > v.LastSeq || f.Epoch > v.Epoch) {
			err = broken("I12: volume %d began at snapshot %d, which is gone or later", id, v.Origin)
		}
		return err == nil
	})
	t.sessions.Scan(func(id layout.SessionID, s *Session) bool {
		for i, pin := range s.Pins {
			if _, ok := t.frozen.Get(pin); err == nil && (!ok || i > 0 && pin <= s.Pins[i-1]) {
				err = broken("I12: session %d reads snapshot %d, which is gone", id, pin)
			}
		}
		return err == nil
	})
	return err
}

// check is what holds of a snapshot by itself.
func (f *Frozen) check() error {
	switch {
	case layout.CheckName("snapshot", f.Name) != nil || checkSize("check", f.SizeBytes) != nil || f.Kind > AutomaticSnapshot:
		return broken("I12: snapshot %d: name %q, size %d, kind %d", f.ID, f.Name, f.SizeBytes, f.Kind)
	case f.Root.Covers > f.Seq || len(f.Root.Page) > MaxRootPage || (f.Root.Number == 0) != (len(f.Root.Page) == 0):
		return broken("I12: snapshot %d at seq %d: root %d covers %d", f.ID, f.Seq, f.Root.Number, f.Root.Covers)
	case len(f.Cuts) > MaxCuts || len(f.Holds) > MaxHolds || f.Kind != TagSnapshot && (len(f.Holds) > 0 || f.Digest != nil):
		return broken("I12: snapshot %d has %d cuts and %d holds", f.ID, len(f.Cuts), len(f.Holds))
	case f.Digest != nil && len(f.Digest) != DigestBytes || f.Removed && len(f.Holds) > 0:
		return broken("I12: snapshot %d has a digest of %d bytes, or is removed though it is held", f.ID, len(f.Digest))
	}
	for i, c := range f.Cuts {
		if c.Seq <= f.Root.Covers || c.Seq >= f.Seq || i > 0 && (c.Before <= f.Cuts[i-1].Before || c.Seq <= f.Cuts[i-1].Seq) {
			return broken("I12: snapshot %d: cut %d at seq %d", f.ID, i, c.Seq)
		}
	}
	return nil
}
