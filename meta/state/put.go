package state

import (
	"fmt"

	"strake/internal/errs"
	"strake/internal/layout"
)

// put and drop are the only functions that change records; they keep every
// derived table in step. Each compares the old record's places in the indexes
// with the new one's.

func (t *tables) putServer(s *Server) {
	t.servers.Set(s.ID, s)
	t.serverByUUID.Set(string(s.UUID[:]), s.ID)
}

func (t *tables) putDevice(d *Device) {
	t.devices.Set(d.ID, d)
	t.deviceByUUID.Set(string(d.UUID[:]), d.ID)
}

func nameKey(tenant, name string) string { return tenant + "/" + name }

func removedKey(v *Volume) string {
	return fmt.Sprintf("%s/%020d", nameKey(v.Tenant, v.Name), uint64(v.ID))
}

// putVolume puts a copy, so that the caller may go on changing its own.
func (t *tables) putVolume(v *Volume) {
	c := *v
	old, _ := t.volumes.Set(v.ID, &c)
	t.unfileVolume(old)
	t.fileVolume(&c)
}

func (t *tables) dropVolume(id layout.VolumeID) {
	old, _ := t.volumes.Delete(id)
	t.unfileVolume(old)
}

func (t *tables) unfileVolume(v *Volume) {
	if v == nil {
		return
	}
	switch {
	case v.Purged:
		t.purged.remove(all, uint64(v.ID))
	case v.Removed:
		t.removedNames.Delete(removedKey(v))
	default:
		t.names.Delete(nameKey(v.Tenant, v.Name))
	}
	if v.Holder != 0 {
		t.held.remove(uint64(v.Holder), uint64(v.ID))
	}
	t.orphaned.remove(all, uint64(v.ID))
	t.freeing.remove(all, uint64(v.ID))
	if v.Origin != 0 {
		t.branches.remove(uint64(v.Origin), uint64(v.ID))
	}
}

func (t *tables) fileVolume(v *Volume) {
	switch {
	case v.Purged:
		t.purged.add(all, uint64(v.ID))
	case v.Removed:
		t.removedNames.Set(removedKey(v), v.ID)
	default:
		t.names.Set(nameKey(v.Tenant, v.Name), v.ID)
	}
	if v.Holder != 0 {
		t.held.add(uint64(v.Holder), uint64(v.ID))
	}
	if v.orphaned() {
		t.orphaned.add(all, uint64(v.ID))
	}
	if v.Freeing {
		t.freeing.add(all, uint64(v.ID))
	}
	if v.Origin != 0 {
		t.branches.add(uint64(v.Origin), uint64(v.ID))
	}
}

// orphaned: the volume must be recovered, and nobody is at it.
func (v *Volume) orphaned() bool { return v.Holder == 0 && v.Unsealed > 0 && !v.Purged }

// putSegment records a segment and brings its volume's figures up to date; v
// is a copy of the volume's record that the caller puts afterwards.
func (t *tables) putSegment(s *Segment, v *Volume) {
	old := t.segment(s.ID)
	if old != nil {
		t.unfileSegment(old, v)
	}
	t.segments.Set(s.ID, pack(s))
	t.fileSegment(s, v)
	if old == nil {
		t.byVolume.add(uint64(s.Volume), uint64(s.ID))
	}
	for i, p := range s.Placements {
		if old != nil && old.Placements[i].Device == p.Device {
			continue
		}
		if old != nil {
			t.byDevice.remove(uint64(old.Placements[i].Device), uint64(s.ID))
		}
		t.byDevice.add(uint64(p.Device), uint64(s.ID))
	}
}

// refile puts a segment where it belongs now that fewer snapshots need it. v is a
// copy of the volume's record that the caller puts afterwards.
func (t *tables) refile(s *Segment, v *Volume) {
	t.unfileSegment(s, v)
	t.fileSegment(s, v)
}

func (t *tables) dropSegment(s *Segment, v *Volume) {
	t.segments.Delete(s.ID)
	t.unfileSegment(s, v)
	t.byVolume.remove(uint64(s.Volume), uint64(s.ID))
	for _, p := range s.Placements {
		t.byDevice.remove(uint64(p.Device), uint64(s.ID))
	}
}

// segmentPlaces are the indexes that change with a segment's state.
func (t *tables) segmentPlaces(s *Segment, v *Volume) (places [7]struct {
	in    bool
	of    index
	owner uint64
}) {
	place := func(i int, in bool, of index, owner uint64) {
		places[i].in, places[i].of, places[i].owner = in, of, owner
	}
	place(0, s.Unsealed(), t.unsealed, uint64(s.Volume))
	place(1, s.replayed(v), t.replayed, uint64(s.Volume))
	place(2, s.State == Allocated, t.allocated, all)
	needed := t.needed(s, v)
	place(3, s.State == Sealed && needed, t.unfinalized, all)
	place(4, !needed && !v.Purged || s.State == Dropped, t.deletable, all)
	place(5, s.Lost != 0 && s.State == Finalized && needed, t.lost, all)
	place(6, s.Retired != 0 && s.State != Dropped, t.retired, uint64(s.Volume))
	return places
}

// replayed: who opens the volume reads the segment's headers.
func (s *Segment) replayed(v *Volume) bool {
	return !s.Map && (s.State == Sealed || s.State == Finalized) && s.Retired == 0 && s.Seal.Last > v.Root.Covers
}

// fileSegment and unfileSegment leave byVolume and byDevice alone: most changes
// keep them.
func (t *tables) fileSegment(s *Segment, v *Volume) {
	for _, p := range t.segmentPlaces(s, v) {
		if p.in {
			p.of.add(p.owner, uint64(s.ID))
		}
	}
	if s.State == Dropped {
		t.dropped++
	}
	v.count(s, 1)
}

func (t *tables) unfileSegment(s *Segment, v *Volume) {
	for _, p := range t.segmentPlaces(s, v) {
		p.of.remove(p.owner, uint64(s.ID)) // also where the root moved past it since
	}
	if s.State == Dropped {
		t.dropped--
	}
	v.count(s, ^uint64(0))
}

// count adds (one = 1) or takes away (one = -1, wrapping) the segment's share
// of the volume's figures.
func (v *Volume) count(s *Segment, one uint64) {
	if s.State == Dropped {
		return
	}
	v.Segments += one
	if s.Unsealed() {
		v.Unsealed += one
		v.ReservedBytes += one * uint64(s.ShardLength) * uint64(s.Geometry.Shards())
		return
	}
	v.StoredBytes += one * s.Seal.storedBytes()
	if s.Retired != 0 {
		v.RetiredBytes += one * s.Seal.storedBytes()
	}
}

// segment gives a copy of the segment's record, nil when there is none. The
// state's own bytes can't be wrong unless memory or a rule broke, and then
// carrying on would spread it.
func (t *tables) segment(id layout.SegmentID) *Segment {
	record, ok := t.segments.Get(id)
	if !ok {
		return nil
	}
	s, err := parse(id, record)
	if err != nil {
		panic(errs.As(err, errs.Internal, "read the state's own record"))
	}
	return s
}

// volume gives a copy of the volume's record to change and put, nil when there
// is none. Cuts and root page are shared and are replaced, not changed.
func (t *tables) volume(id layout.VolumeID) *Volume {
	v, ok := t.volumes.Get(id)
	if !ok {
		return nil
	}
	c := *v
	return &c
}
