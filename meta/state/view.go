package state

import (
	"strings"

	"github.com/tidwall/btree"

	"strake/internal/errs"
	"strake/internal/layout"
)

// View is the state at one moment; it never changes. What its methods return
// is the caller's, but for the slices inside records, which are read only.
type View struct{ t *tables }

// Applied is the log index of the last command.
func (v *View) Applied() uint64 { return v.t.applied }

// Version is that of the program that can read this state; see the constant Version.
func (v *View) Version() uint32 { return v.t.version }

// Snapshot gives what WriteTo needs to write this state.
func (v *View) Snapshot() *Snapshot { return &Snapshot{view: v} }

// Cell gives the cell's identity; ID 0 before FormCell.
func (v *View) Cell() Cell { return v.t.cell }

// Server gives a server's record.
func (v *View) Server(id layout.ServerID) (Server, bool) { return value(v.t.servers, id) }

// ServerByUUID finds a server by the identity that it registered with.
func (v *View) ServerByUUID(uuid layout.UUID) (Server, bool) {
	id, _ := v.t.serverByUUID.Get(string(uuid[:]))
	return v.Server(id)
}

// Servers gives all servers in id order.
func (v *View) Servers() []Server { return values(v.t.servers) }

// Device gives a device's record.
func (v *View) Device(id layout.DeviceID) (Device, bool) { return value(v.t.devices, id) }

// Devices gives all devices in id order.
func (v *View) Devices() []Device { return values(v.t.devices) }

// Session gives a session's record.
func (v *View) Session(id layout.SessionID) (Session, bool) { return value(v.t.sessions, id) }

// Sessions gives all sessions in id order.
func (v *View) Sessions() []Session { return values(v.t.sessions) }

// Held gives the volumes whose lease the session holds.
func (v *View) Held(id layout.SessionID) (volumes []layout.VolumeID) {
	v.t.held.ascend(uint64(id), 0, func(m uint64) bool { volumes = append(volumes, layout.VolumeID(m)); return true })
	return volumes
}

// Volume gives a volume's record, also of one that is removed or purged.
func (v *View) Volume(id layout.VolumeID) (Volume, bool) { return value(v.t.volumes, id) }

// VolumeByName finds a volume that is not removed; tenant "" is "default".
func (v *View) VolumeByName(tenant, name string) (Volume, bool) {
	id, _ := v.t.names.Get(VolumeRef{Tenant: tenant, Name: name}.key())
	return v.Volume(id)
}

// Resolve finds the volume that a reference names: removed ones by id alone,
// purged ones never. The error is NotFound.
func (v *View) Resolve(ref VolumeRef) (Volume, error) {
	found, err := v.t.resolve("look up volume", ref)
	if err != nil {
		return Volume{}, err
	}
	return *found, nil
}

// Open gives what a reader of the volume needs.
func (v *View) Open(ref VolumeRef) (OpenVolume, error) {
	found, err := v.t.resolve("open volume", ref)
	if err != nil {
		return OpenVolume{}, err
	}
	return *v.t.open(found), nil
}

// Volumes gives a page of the volumes that are not removed, in order of
// "tenant/name", those above after; tenant "" means all tenants.
func (v *View) Volumes(tenant, after string, most int) (page []Volume, more bool) {
	return v.volumePage(v.t.names, tenant, after, most)
}

// RemovedVolumes gives a page of the volumes that undelete could bring back,
// in order of "tenant/name" and then id. After "tenant/name" come the volumes
// of later names; RemovedKey of a volume goes on right behind it.
func (v *View) RemovedVolumes(tenant, after string, most int) (page []Volume, more bool) {
	if strings.Count(after, "/") == 1 {
		after += "/~" // above every id
	}
	return v.volumePage(v.t.removedNames, tenant, after, most)
}

// RemovedKey is the place of a volume in the order of RemovedVolumes.
func (v *Volume) RemovedKey() string { return removedKey(v) }

func (v *View) volumePage(names *btree.Map[string, layout.VolumeID], tenant, after string, most int) (page []Volume, more bool) {
	prefix := ""
	if tenant != "" {
		prefix = tenant + "/"
	}
	most = clampPage(most)
	names.Ascend(max(prefix, after), func(key string, id layout.VolumeID) bool {
		switch {
		case key == after:
			return true
		case !strings.HasPrefix(key, prefix):
			return false
		case len(page) == most:
			more = true
			return false
		}
		vol, _ := v.Volume(id)
		page = append(page, vol)
		return true
	})
	return page, more
}

func clampPage(most int) int {
	if most <= 0 || most > MaxPage {
		return MaxPage
	}
	return most
}

// key is what identifiers of records have in common.
type key interface{ ~uint64 }

func value[K key, V any](m *btree.Map[K, *V], id K) (V, bool) {
	p, ok := m.Get(id)
	if !ok {
		var none V
		return none, false
	}
	return *p, true
}

func values[K key, V any](m *btree.Map[K, *V]) []V {
	out := make([]V, 0, m.Len())
	m.Scan(func(_ K, p *V) bool { out = append(out, *p); return true })
	return out
}

// LastSegment is the highest id of a segment handed out so far.
func (v *View) LastSegment() layout.SegmentID { return v.t.last.Segment }

// Needed tells whether the head, a snapshot, or a branch names the segment.
func (v *View) Needed(s *Segment) bool {
	vol, ok := v.t.volumes.Get(s.Volume)
	return ok && v.t.needed(s, vol)
}

// Freeing lists volumes whose retired segments must be looked at.
func (v *View) Freeing(after layout.VolumeID, most int) (page []Volume, more bool) {
	return v.volumesIn(v.t.freeing, after, most)
}

// Snapshots gives a page of a family's snapshots that are not removed, in the
// order in which they were made, those above after.
func (v *View) Snapshots(family layout.VolumeID, after layout.SnapshotID, most int) (page []Frozen, more bool) {
	most = clampPage(most)
	v.t.ofFamily.ascend(uint64(family), uint64(after), func(id uint64) bool {
		if len(page) == most {
			more = true
			return false
		}
		f, _ := v.t.frozen.Get(layout.SnapshotID(id))
		page = append(page, *f)
		return true
	})
	return page, more
}

// FindSnapshot finds a snapshot by its volume's reference and its own name. The error
// is NotFound.
func (v *View) FindSnapshot(ref VolumeRef, name string) (Frozen, error) {
	f, err := v.t.resolveFrozen("look up snapshot", ref, name)
	if err != nil {
		return Frozen{}, err
	}
	return *f, nil
}

// SnapshotByID gives a snapshot's record, also of one that is removed and not
// gone yet.
func (v *View) SnapshotByID(id layout.SnapshotID) (Frozen, bool) { return value(v.t.frozen, id) }

// TagByDigest finds a tag by its content digest: of a tenant, or, if volume is not
// empty, of that volume. All tags with a digest have the same content, but for
// zeros at the end: their sizes may differ. It is the oldest.
func (v *View) TagByDigest(tenant, volume string, digest []byte) (found Frozen, ok bool) {
	tenant = or(tenant, layout.DefaultTenant)
	family := layout.VolumeID(0)
	if volume != "" {
		of, _ := v.VolumeByName(tenant, volume)
		if family = of.FamilyID(); family == 0 {
			return found, false
		}
	}
	v.t.byDigest.Ascend(digestKey(digest, 0), func(key string, id layout.SnapshotID) bool {
		if !strings.HasPrefix(key, string(digest)) {
			return false
		}
		f, _ := v.t.frozen.Get(id)
		of, _ := v.t.volumes.Get(f.Volume)
		if ok = of.Tenant == tenant && (family == 0 || f.Family == family); ok {
			found = *f
		}
		return !ok
	})
	return found, ok
}

// Undigested gives tags whose digest is not computed yet, those above after.
func (v *View) Undigested(after layout.SnapshotID, most int) (list []Frozen) {
	v.t.undigested.ascend(all, uint64(after), func(id uint64) bool {
		f, _ := v.t.frozen.Get(layout.SnapshotID(id))
		list = append(list, *f)
		return len(list) < clampPage(most)
	})
	return list
}

// OpenSnapshot gives what a reader of a snapshot needs: the volume as it was,
// and its log as that of a branch which began there.
func (v *View) OpenSnapshot(id layout.SnapshotID) (OpenVolume, error) {
	f := v.t.snapshotOf(id)
	if f == nil {
		return OpenVolume{}, errs.New(errs.NotFound, "open snapshot", "there is no snapshot %d", id)
	}
	return *v.t.openFrozen(f), nil
}

// StandOn gives the volumes that began at a snapshot and may still name what it
// names, and tells whether sessions read it.
func (v *View) StandOn(id layout.SnapshotID) (branches []Volume, read bool) {
	v.t.branches.ascend(uint64(id), 0, func(b uint64) bool {
		vol, _ := v.Volume(layout.VolumeID(b))
		branches = append(branches, vol)
		return len(branches) < MaxPage
	})
	return branches, v.t.pinned.owns(uint64(id))
}

// CountSnapshots counts a family's snapshots that are not removed.
func (v *View) CountSnapshots(family layout.VolumeID) int { return v.t.countFrozen(family) }
