package state

import (
	"strings"

	"github.com/tidwall/btree"

	"strake/internal/layout"
)

// View is the state at one moment; it never changes. What its methods return
// is the caller's, but for the slices inside records, which are read only.
type View struct{ t *tables }

// Applied is the log index of the last command.
func (v *View) Applied() uint64 { return v.t.applied }

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
