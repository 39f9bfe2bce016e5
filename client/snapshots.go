package client

import (
	"context"
	"encoding/hex"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// digestBytes is the length of a tag's content digest.
	digestBytes = 32
	// recoverTries bounds how often a command that wants a recovered volume is
	// repeated, and recoverPause is the wait before each.
	recoverTries = 20
	recoverPause = 250 * time.Millisecond
)

// SnapshotInfo is what the metadata service knows of a snapshot or a tag.
type SnapshotInfo struct {
	ID        uint64    `json:"id"`
	Name      string    `json:"name"` // [tenant/]volume@snapshot
	Kind      string    `json:"kind"` // snapshot, tag, automatic
	Size      int64     `json:"size_bytes"`
	Seq       uint64    `json:"seq"`
	Epoch     uint64    `json:"epoch"`
	MapRoot   uint64    `json:"map_root"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Of tags: Ready tells that Digest, the content digest in hexadecimal, stands.
	Ready   bool     `json:"ready,omitempty"`
	Digest  string   `json:"digest,omitempty"`
	Content int64    `json:"content_bytes,omitempty"` // in blocks that are not zero
	Holds   []string `json:"holds,omitempty"`         // who keeps it from being removed
	// Told by Snapshot alone:
	Clones []string `json:"clones,omitempty"` // volumes that began as it
	Open   bool     `json:"open,omitempty"`   // somebody reads it
	// What its removal gives back at once, and about what cleaning gives back then, parity included.
	FreesBytes     uint64 `json:"frees_bytes"`
	CleanableBytes uint64 `json:"cleanable_bytes"`
}

func snapshotInfo(s *pb.Snapshot) SnapshotInfo {
	if s == nil {
		return SnapshotInfo{}
	}
	info := SnapshotInfo{ID: s.Id, Name: layout.VolumeName{Tenant: s.Tenant, Volume: s.VolumeName, Snapshot: s.Name}.String(),
		Kind: s.Kind, Size: int64(s.SizeBytes), Seq: s.Seq, Epoch: s.Epoch, MapRoot: s.RootNumber,
		Ready: len(s.Digest) > 0, Digest: hex.EncodeToString(s.Digest), Content: layout.BlockCount(s.Blocks).Bytes(),
		Holds: s.Holds, Clones: s.Clones, Open: s.Open, FreesBytes: s.FreesBytes, CleanableBytes: s.CleanableBytes}
	if s.AtUnix != 0 {
		info.CreatedAt = time.Unix(int64(s.AtUnix), 0).UTC()
	}
	return info
}

// parseSnapshot parses `[tenant/]volume@snapshot`.
func parseSnapshot(op, name string) (layout.VolumeName, error) {
	n, err := layout.ParseVolumeName(name)
	if err != nil {
		return n, errs.As(err, errs.InvalidArgument, "%s", op)
	}
	if n.Snapshot == "" {
		return n, errs.New(errs.InvalidArgument, op, "%q names a volume, a snapshot is wanted", name).WithHint("a snapshot is volume@name")
	}
	return n, nil
}

// CreateSnapshots freezes one or several volumes (`volume@name` each), all in one
// step or none. Each holds every write that was flushed or acknowledged before
// the call, and equals a prefix of its volume's write order. A volume that is
// written elsewhere is flushed there first, which is bounded by 5 s: ErrLeaseHeld
// names the writer then. Errors: ErrNotFound, ErrExists, ErrLeaseHeld.
func (c *Cell) CreateSnapshots(ctx context.Context, names ...string) ([]SnapshotInfo, error) {
	return c.freeze(ctx, false, names)
}

// CreateTags makes tags: snapshots that get a content digest in the background,
// can be held, and are opened by name or digest. Otherwise as CreateSnapshots.
func (c *Cell) CreateTags(ctx context.Context, names ...string) ([]SnapshotInfo, error) {
	return c.freeze(ctx, true, names)
}

func (c *Cell) freeze(ctx context.Context, tag bool, names []string) ([]SnapshotInfo, error) {
	op := "create snapshot"
	if len(names) == 1 {
		op += " " + names[0]
	}
	request := &pb.CreateSnapshotsRequest{Command: newCommand(), Tag: tag}
	var volumes []layout.VolumeName
	for _, name := range names {
		n, err := parseSnapshot(op, name)
		if err != nil {
			return nil, err
		}
		request.Items = append(request.Items, &pb.CreateSnapshotsRequest_Item{Tenant: n.Tenant, Volume: n.Volume, Name: n.Snapshot})
		volumes = append(volumes, layout.VolumeName{Tenant: n.Tenant, Volume: n.Volume})
	}
	var r *pb.CreateSnapshotsReply
	err := c.recovered(ctx, volumes, func() (err error) {
		return c.meta.DoWithin(ctx, barrierTimeout+recoverPause, func(ctx context.Context, m pb.MetaClient) (err error) {
			r, err = m.CreateSnapshots(ctx, request)
			return err
		})
	})
	if err != nil {
		return nil, errs.Wrap(err, "%s", op)
	}
	var list []SnapshotInfo
	for _, s := range r.GetSnapshots() {
		list = append(list, snapshotInfo(s))
	}
	return list, nil
}

// recovered runs a command that wants volumes recovered whose writers are gone.
func (c *Cell) recovered(ctx context.Context, volumes []layout.VolumeName, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		if errs.KindOf(err) != errs.Busy || try == recoverTries || ctx.Err() != nil {
			return err
		}
		for _, n := range volumes {
			v, err := c.view(ctx, n)
			if err != nil {
				return err
			}
			if v.Volume.HolderSession == 0 && hasUnsealed(v) {
				if err := c.recoverElsewhere(ctx, layout.VolumeID(v.Volume.Id)); err != nil {
					return err
				}
			}
		}
		pause(ctx, recoverPause)
	}
}

// Snapshot describes a snapshot or a tag: also what stands on it, and what its
// removal gives back. Error: ErrNotFound.
func (c *Cell) Snapshot(ctx context.Context, name string) (SnapshotInfo, error) {
	op := "look up snapshot " + name
	n, err := c.findSnapshot(ctx, op, name)
	if err != nil {
		return SnapshotInfo{}, err
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.GetSnapshotReply, error) {
		return m.GetSnapshot(ctx, &pb.GetSnapshotRequest{Tenant: n.Tenant, Volume: n.Volume, Name: n.Snapshot})
	})
	return snapshotInfo(r.GetSnapshot()), err
}

// Snapshots lists a volume's snapshots in the order in which they were made, a
// page at a time: those after an id (0: from the first), at most `most` (0: 1000,
// which is also the cap). next is 0 at the end, else what to go on after. tags
// lists tags alone; a page may hold fewer than most then.
func (c *Cell) Snapshots(ctx context.Context, volume string, after uint64, most int, tags bool) (list []SnapshotInfo, next uint64, err error) {
	op := "list snapshots of " + volume
	n, err := parseName(op, volume)
	if err != nil {
		return nil, 0, err
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.ListSnapshotsReply, error) {
		return m.ListSnapshots(ctx, &pb.ListSnapshotsRequest{Tenant: n.Tenant, Volume: n.Volume, After: after, Most: uint32(max(most, 0)), Tags: tags})
	})
	for _, s := range r.GetSnapshots() {
		list = append(list, snapshotInfo(s))
	}
	if r.GetMore() {
		next = r.Last
	}
	return list, next, err
}

// RemoveSnapshot removes a snapshot or a tag. What others don't need of it comes
// back in the background; while clones or readers stand on it, it is only hidden.
// Errors: ErrNotFound, ErrBusy (a tag that is held; by whom).
func (c *Cell) RemoveSnapshot(ctx context.Context, name string) error {
	op := "remove snapshot " + name
	n, err := c.findSnapshot(ctx, op, name)
	if err != nil {
		return err
	}
	request := &pb.RemoveSnapshotRequest{Command: newCommand(), Tenant: n.Tenant, Volume: n.Volume, Name: n.Snapshot}
	_, err = call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.RemoveSnapshotReply, error) {
		return m.RemoveSnapshot(ctx, request)
	})
	return err
}

// CloneVolume makes a volume that begins as a snapshot and is writable at once,
// whatever its size. Errors: ErrNotFound, ErrExists.
func (c *Cell) CloneVolume(ctx context.Context, snapshot, name string) (VolumeInfo, error) {
	op := "clone " + snapshot + " to " + name
	n, err := c.findSnapshot(ctx, op, snapshot)
	if err != nil {
		return VolumeInfo{}, err
	}
	to, err := parseName(op, name)
	if err != nil {
		return VolumeInfo{}, err
	}
	request := &pb.CloneVolumeRequest{Command: newCommand(), Tenant: n.Tenant, Volume: n.Volume, Snapshot: n.Snapshot, ToTenant: to.Tenant, ToName: to.Volume}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.CloneVolumeReply, error) {
		return m.CloneVolume(ctx, request)
	})
	return volumeInfo(r.GetVolume()), err
}

// RollbackVolume makes a volume what a snapshot of it is, at once. What it was is
// kept as an automatic snapshot. A volume that somebody writes is refused, unless
// force shuts the writer out. Errors: ErrNotFound, ErrLeaseHeld (names the writer).
func (c *Cell) RollbackVolume(ctx context.Context, snapshot string, force bool) (VolumeInfo, SnapshotInfo, error) {
	op := "roll back to " + snapshot
	n, err := c.findSnapshot(ctx, op, snapshot)
	if err != nil {
		return VolumeInfo{}, SnapshotInfo{}, err
	}
	volume := layout.VolumeName{Tenant: n.Tenant, Volume: n.Volume}
	request := &pb.RollbackVolumeRequest{Command: newCommand(), Tenant: n.Tenant, Volume: n.Volume, Snapshot: n.Snapshot}
	var r *pb.RollbackVolumeReply
	rollBack := func() error {
		return c.recovered(ctx, []layout.VolumeName{volume}, func() error {
			return c.yielded(ctx, volume, func() (err error) {
				r, err = call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.RollbackVolumeReply, error) {
					return m.RollbackVolume(ctx, request)
				})
				return err
			})
		})
	}
	// Only a rollback that but for the writer would be carried out shuts it out.
	if err = rollBack(); force && errs.KindOf(err) == errs.LeaseHeld {
		if err = errs.Wrap(c.shutOut(ctx, volume, true), "%s", op); err == nil {
			err = rollBack()
		}
	}
	return volumeInfo(r.GetVolume()), snapshotInfo(r.GetKept()), err
}

// shutOut takes a volume from whoever writes it, without force from a janitor alone,
// and leaves it recovered and without a writer.
func (c *Cell) shutOut(ctx context.Context, n layout.VolumeName, force bool) error {
	l, _, last, err := c.takeOver(ctx, &pb.AcquireLeaseRequest{Tenant: n.Tenant, Name: n.Volume, Force: force})
	if err != nil {
		return err
	}
	if err = l.release(ctx, last); err != nil {
		l.abandon(ctx)
	}
	return err
}

// HoldTag keeps a tag from being removed, in the name of by (as a volume's name
// is made); ReleaseTag takes that back. Errors: ErrNotFound, ErrInvalidArgument.
func (c *Cell) HoldTag(ctx context.Context, name, by string) (SnapshotInfo, error) {
	return c.holdTag(ctx, "hold tag "+name, name, by, false)
}

// ReleaseTag: see HoldTag.
func (c *Cell) ReleaseTag(ctx context.Context, name, by string) (SnapshotInfo, error) {
	return c.holdTag(ctx, "release tag "+name, name, by, true)
}

func (c *Cell) holdTag(ctx context.Context, op, name, by string, release bool) (SnapshotInfo, error) {
	n, err := c.findSnapshot(ctx, op, name)
	if err != nil {
		return SnapshotInfo{}, err
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.HoldTagReply, error) {
		return m.HoldTag(ctx, &pb.HoldTagRequest{Tenant: n.Tenant, Volume: n.Volume, Name: n.Snapshot, By: by, Release: release})
	})
	return snapshotInfo(r.GetSnapshot()), err
}
