package state

import (
	"strconv"

	"strake/internal/errs"
	"strake/internal/layout"
)

func (c RemoveVolume) check() error   { return c.Volume.check("remove volume") }
func (c UndeleteVolume) check() error { return c.Volume.check("undelete volume") }
func (c PurgeVolume) check() error    { return nil }

func (c RemoveVolume) apply(t *tables, r *Result) error {
	v, err := t.resolve("remove volume", c.Volume)
	if err != nil {
		return err
	}
	if v.Holder != 0 {
		return t.leaseHeld("remove volume "+v.path(), v)
	}
	if err := t.mayGo("remove volume "+v.path(), v, c.Now); err != nil {
		return err
	}
	r.Volume = v.ID
	if !v.Removed {
		v.Removed, v.RemovedAtUnix = true, c.AtUnix
		t.putVolume(v)
		r.emit(VolumeRemoved{Volume: v.ID})
	}
	if c.Now {
		t.purge(v, r)
	}
	return nil
}

func (c UndeleteVolume) apply(t *tables, r *Result) error {
	v, err := t.resolveRemoved(c.Volume)
	if err != nil {
		return err
	}
	op := "undelete volume " + v.path()
	if id, taken := t.names.Get(nameKey(v.Tenant, v.Name)); taken {
		return errs.New(errs.AlreadyExists, op, "the name belongs to volume %d now", id).WithHint("remove that volume first")
	}
	v.Removed, v.RemovedAtUnix = false, 0
	t.putVolume(v)
	r.Volume = v.ID
	r.emit(VolumeUndeleted{Volume: v.ID})
	return nil
}

func (c PurgeVolume) apply(t *tables, r *Result) error {
	v := t.volume(c.Volume)
	r.Volume = c.Volume
	if (v == nil && c.Volume != 0 && c.Volume <= t.last.Volume) || v != nil && v.Purged {
		r.Repeat = true
		return nil
	}
	if v == nil {
		return errs.New(errs.NotFound, "purge volume", "volume %d never was", c.Volume)
	}
	if !v.Removed {
		return errs.New(errs.Conflict, "purge volume "+v.path(), "it is not removed").WithHint("remove it first")
	}
	if v.Holder != 0 {
		return t.leaseHeld("purge volume "+v.path(), v)
	}
	if err := t.mayGo("purge volume "+v.path(), v, true); err != nil {
		return err
	}
	t.purge(v, r)
	return nil
}

// mayGo refuses to remove a volume with a tag that is held, or, for ever, one
// with snapshots that is not recovered: clones may need what its writer left.
func (t *tables) mayGo(op string, v *Volume, ever bool) error {
	for _, id := range t.snapshotsOf(v.family()) {
		f, _ := t.frozen.Get(id)
		if len(f.Holds) > 0 {
			return errs.New(errs.Busy, op, "its tag %s is held by %s", f.Name, f.Holds[0]).WithHint("`strake tag release` gives it up")
		}
	}
	if ever && v.Unsealed > 0 && t.newest(v.ID) != nil {
		return errs.New(errs.Busy, op, "its writer is gone, it is not recovered yet, and it has snapshots").WithHint("repeat in a while")
	}
	return nil
}

func (t *tables) snapshotsOf(family layout.VolumeID) (ids []layout.SnapshotID) {
	t.ofFamily.ascend(uint64(family), 0, func(id uint64) bool { ids = append(ids, layout.SnapshotID(id)); return true })
	return ids
}

// purge makes all the volume's segments deletable that clones of it don't need,
// in one step whatever their number, and its snapshots with it. The record stays
// until the last of them is gone.
func (t *tables) purge(v *Volume, r *Result) {
	v.Purged, v.Undecided = true, ""
	t.putVolume(v)
	r.emit(VolumePurged{Volume: v.ID})
	for _, id := range t.snapshotsOf(v.family()) {
		t.removeFrozen(t.snapshotOf(id), r)
	}
	if v := t.volume(v.ID); v != nil {
		t.settle(v, r)
	}
}

func (r VolumeRef) check(op string) error {
	if r.ID == 0 && r.Name == "" {
		return errs.New(errs.InvalidArgument, op, "neither id nor name")
	}
	if len(r.Name) > layout.MaxName || len(r.Tenant) > layout.MaxName {
		return errs.New(errs.InvalidArgument, op, "a name of more than %d characters", layout.MaxName)
	}
	return nil
}

func (r VolumeRef) number() string { return strconv.FormatUint(uint64(r.ID), 10) }

func (r VolumeRef) key() string {
	if r.Tenant == "" {
		r.Tenant = layout.DefaultTenant
	}
	return nameKey(r.Tenant, r.Name)
}

// pathOf is a volume's name for messages.
func pathOf(tenant, name string) string {
	return layout.VolumeName{Tenant: tenant, Volume: name}.String()
}

func (v *Volume) path() string { return pathOf(v.Tenant, v.Name) }

// resolve finds a volume by reference and gives a copy of its record: removed
// ones by id alone, purged ones never.
func (t *tables) resolve(op string, ref VolumeRef) (*Volume, error) {
	id, what := ref.ID, pathOf(ref.Tenant, ref.Name)
	if id == 0 {
		id, _ = t.names.Get(ref.key())
	} else {
		what = ref.number()
	}
	if v := t.volume(id); v != nil && !v.Purged {
		return v, nil
	}
	return nil, errs.New(errs.NotFound, op, "there is no volume %s", what).WithHint("`strake volume ls` lists them")
}

// resolveRemoved finds a removed volume; of several with the same name only by id.
func (t *tables) resolveRemoved(ref VolumeRef) (*Volume, error) {
	op := "undelete volume"
	if ref.ID != 0 {
		if v := t.volume(ref.ID); v != nil && v.Removed && !v.Purged {
			return v, nil
		}
		return nil, errs.New(errs.NotFound, op, "there is no removed volume %s", ref.number()).WithHint("`strake volume ls --removed` lists them")
	}
	var found []layout.VolumeID
	prefix := ref.key() + "/"
	t.removedNames.Ascend(prefix, func(key string, id layout.VolumeID) bool {
		if len(key) < len(prefix) || key[:len(prefix)] != prefix {
			return false
		}
		found = append(found, id)
		return len(found) < 2
	})
	switch len(found) {
	case 0:
		return nil, errs.New(errs.NotFound, op, "there is no removed volume %s", pathOf(ref.Tenant, ref.Name)).WithHint("`strake volume ls --removed` lists them")
	case 1:
		return t.volume(found[0]), nil
	}
	return nil, errs.New(errs.InvalidArgument, op, "several removed volumes are called %s, among them %d and %d", pathOf(ref.Tenant, ref.Name), found[0], found[1]).
		WithHint("say which one with --id; `strake volume ls --removed` tells when each was removed")
}
