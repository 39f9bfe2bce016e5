package client

import (
	"context"
	"fmt"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// VolumeOptions describe a new volume.
type VolumeOptions struct {
	// Size in bytes: a positive multiple of 4096, at most what the cell holds.
	Size int64
	// K and M are the data and parity shards of its segments: 1 <= K <= 16,
	// 1 <= M <= 4, K+M at most the cell's servers. Both 0: the widest of 4+2,
	// 2+2, 2+1, 1+1 that the cell holds.
	K, M int
	// Class is the default QoS class by name; "" is training.
	Class string
}

// VolumeInfo is what the metadata service knows of a volume.
type VolumeInfo struct {
	ID            uint64    `json:"id"`
	Name          string    `json:"name"` // [tenant/]volume
	Size          int64     `json:"size_bytes"`
	K             int       `json:"k"`
	M             int       `json:"m"`
	Class         string    `json:"class"`
	State         string    `json:"state"` // idle, open, recovering, undecided, removed
	Holder        string    `json:"holder,omitempty"`
	Epoch         uint64    `json:"epoch"`
	Segments      uint64    `json:"segments"`
	Unsealed      uint64    `json:"segments_unsealed"`
	StoredBytes   uint64    `json:"stored_bytes"`   // in sealed segments, parity included
	ReservedBytes uint64    `json:"reserved_bytes"` // promised to unsealed segments
	MapRoot       uint64    `json:"map_root"`
	Undecided     string    `json:"undecided,omitempty"` // the servers and shards that block its recovery, and why
	Blocked       string    `json:"blocked,omitempty"`   // for how long acknowledgements have been blocked, by which server, and why; Volume alone tells
	Losses        []Loss    `json:"accepted_losses,omitempty"`
	RemovedAt     time.Time `json:"removed_at,omitzero"`
	Snapshots     uint64    `json:"snapshots"`       // tags and automatic ones among them
	SnapshotBytes uint64    `json:"snapshot_bytes"`  // what only snapshots need; Volume alone tells
	LiveBytes     uint64    `json:"live_bytes"`      // that the newest map root names, parity not counted
	Inherited     uint64    `json:"inherited_bytes"` // of these, in segments of what the volume began as
	GarbageBytes  uint64    `json:"garbage_bytes"`   // of the stored ones, about what cleaning would give back, snapshots' needs aside
	Flattening    bool      `json:"flattening,omitempty"`
	Origin        string    `json:"origin,omitempty"` // volume@snapshot that it began as and still needs
}

// Loss is on record when people gave up what could not be recovered.
type Loss struct {
	Epoch uint64    `json:"epoch"`
	Cut   uint64    `json:"cut"` // the log's last seq since
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// CreateVolume makes a volume. Errors: ErrInvalidArgument (name, size or
// geometry; the text says which), ErrExists.
func (c *Cell) CreateVolume(ctx context.Context, name string, o VolumeOptions) (VolumeInfo, error) {
	op := "create volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return VolumeInfo{}, err
	}
	class, err := c.classNumber(ctx, op, o.Class)
	if err != nil {
		return VolumeInfo{}, err
	}
	if o.K < 0 || o.K > layout.MaxData || o.M < 0 || o.M > layout.MaxParity || (o.K == 0) != (o.M == 0) {
		return VolumeInfo{}, errs.New(errs.InvalidArgument, op, "geometry %d+%d", o.K, o.M).
			WithHint("k is 1 to %d, m is 1 to %d; the smallest is 1+1", layout.MaxData, layout.MaxParity)
	}
	if o.Size < 0 {
		return VolumeInfo{}, errs.New(errs.InvalidArgument, op, "size %d is negative", o.Size)
	}
	request := &pb.CreateVolumeRequest{Command: newCommand(), Tenant: n.Tenant, Name: n.Volume,
		SizeBytes: uint64(o.Size), Geometry: &pb.Geometry{K: uint32(o.K), M: uint32(o.M)}, Class: class}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.CreateVolumeReply, error) {
		return m.CreateVolume(ctx, request)
	})
	return volumeInfo(r.GetVolume()), err
}

// Volume describes a volume. Error: ErrNotFound.
func (c *Cell) Volume(ctx context.Context, name string) (VolumeInfo, error) {
	op := "look up volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return VolumeInfo{}, err
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.GetVolumeReply, error) {
		return m.GetVolume(ctx, &pb.GetVolumeRequest{Tenant: n.Tenant, Name: n.Volume})
	})
	return volumeInfo(r.GetVolume()), err
}

// Volumes lists the volumes of a tenant in name order; "" is all tenants. With
// removed, it lists those that UndeleteVolume can bring back instead.
func (c *Cell) Volumes(ctx context.Context, tenant string, removed bool) ([]VolumeInfo, error) {
	var list []VolumeInfo
	for after := ""; ; {
		r, err := call(ctx, c, "list volumes", func(ctx context.Context, m pb.MetaClient) (*pb.ListVolumesReply, error) {
			return m.ListVolumes(ctx, &pb.ListVolumesRequest{Tenant: tenant, After: after, Removed: removed})
		})
		if err != nil {
			return nil, err
		}
		for _, v := range r.Volumes {
			list = append(list, volumeInfo(v))
			after = v.Tenant + "/" + v.Name
		}
		if !r.More {
			return list, nil
		}
	}
}

// ResizeVolume changes a volume's size in bytes. A smaller size is refused unless
// shrink is set: what lies beyond it is lost, and reads as zeros should the
// volume grow again. Errors: ErrNotFound, ErrLeaseHeld when somebody writes a
// volume that is to shrink.
func (c *Cell) ResizeVolume(ctx context.Context, name string, size int64, shrink bool) (VolumeInfo, error) {
	op := "resize volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return VolumeInfo{}, err
	}
	if size <= 0 || size%layout.BlockSize != 0 {
		return VolumeInfo{}, errs.New(errs.InvalidArgument, op, "a size of %d bytes", size).WithHint("a size is a multiple of %d", layout.BlockSize)
	}
	request := &pb.ResizeVolumeRequest{Tenant: n.Tenant, Name: n.Volume, SizeBytes: uint64(size), Shrink: shrink}
	if was, err := c.Volume(ctx, name); err != nil {
		return was, err
	} else if shrink && size < was.Size {
		return c.shrinkVolume(ctx, op, request)
	}
	return c.resizeVolume(ctx, op, request)
}

// shrinkVolume discards what lies beyond the new size before it cuts it off, all
// under the volume's lease, so that nobody writes there in between.
func (c *Cell) shrinkVolume(ctx context.Context, op string, request *pb.ResizeVolumeRequest) (info VolumeInfo, err error) {
	v, err := c.Open(ctx, request.Tenant+"/"+request.Name, OpenOptions{Write: true})
	if err != nil {
		return info, err
	}
	defer func() {
		if e := v.CloseContext(ctx); err == nil {
			err = e
		}
	}()
	if beyond := v.Size() - int64(request.SizeBytes); beyond > 0 {
		if err := v.Discard(ctx, int64(request.SizeBytes), beyond); err != nil {
			return info, err
		}
		if err := v.Flush(ctx); err != nil {
			return info, err
		}
	}
	request.Session, request.Epoch = uint64(v.w.lease.session), uint64(v.w.lease.epoch)
	return c.resizeVolume(ctx, op, request)
}

func (c *Cell) resizeVolume(ctx context.Context, op string, request *pb.ResizeVolumeRequest) (VolumeInfo, error) {
	request.Command = newCommand()
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.ResizeVolumeReply, error) {
		return m.ResizeVolume(ctx, request)
	})
	return volumeInfo(r.GetVolume()), err
}

// RemoveVolume removes a volume. Its data is kept for 24 h, for UndeleteVolume,
// unless now is set. Errors: ErrNotFound, ErrLeaseHeld.
func (c *Cell) RemoveVolume(ctx context.Context, name string, now bool) error {
	op := "remove volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return err
	}
	request := &pb.RemoveVolumeRequest{Command: newCommand(), Tenant: n.Tenant, Name: n.Volume, Now: now}
	return c.yielded(ctx, n, func() error {
		_, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.RemoveVolumeReply, error) {
			return m.RemoveVolume(ctx, request)
		})
		return err
	})
}

// UndeleteVolume brings a removed volume back. id says which one, where several
// removed volumes have had the name (Volumes lists them); 0 where one has. Errors:
// ErrNotFound, ErrInvalidArgument (several have), ErrExists when the name was taken
// since.
func (c *Cell) UndeleteVolume(ctx context.Context, name string, id uint64) (VolumeInfo, error) {
	op := "undelete volume " + name
	n, err := parseName(op, name)
	if err == nil && id != 0 {
		_, err = c.removedVolume(ctx, op, n, id)
	}
	if err != nil {
		return VolumeInfo{}, err
	}
	request := &pb.UndeleteVolumeRequest{Command: newCommand(), Tenant: n.Tenant, Name: n.Volume, Id: id}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.UndeleteVolumeReply, error) {
		return m.UndeleteVolume(ctx, request)
	})
	return volumeInfo(r.GetVolume()), err
}

// PurgeVolume frees the space of a volume that was removed before, at once: it can't be
// brought back any more. id as in UndeleteVolume; errors too.
func (c *Cell) PurgeVolume(ctx context.Context, name string, id uint64) (VolumeInfo, error) {
	op := "free removed volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return VolumeInfo{}, err
	}
	v, err := c.removedVolume(ctx, op, n, id)
	if err != nil {
		return VolumeInfo{}, err
	}
	request := &pb.RemoveVolumeRequest{Command: newCommand(), Id: v.ID, Now: true}
	_, err = call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.RemoveVolumeReply, error) {
		return m.RemoveVolume(ctx, request)
	})
	return v, err
}

// RemovedVolumes lists the removed volumes of one name that can be brought back.
func (c *Cell) RemovedVolumes(ctx context.Context, name string) (list []VolumeInfo, err error) {
	n, err := parseName("list removed volumes", name)
	if err != nil {
		return nil, err
	}
	all, err := c.Volumes(ctx, n.Tenant, true)
	for _, v := range all {
		if v.Name == n.String() {
			list = append(list, v)
		}
	}
	return list, err
}

// removedVolume finds a removed volume by name, and by id where several have had it.
func (c *Cell) removedVolume(ctx context.Context, op string, n layout.VolumeName, id uint64) (VolumeInfo, error) {
	list, err := c.RemovedVolumes(ctx, n.String())
	if err != nil {
		return VolumeInfo{}, errs.Wrap(err, "%s", op)
	}
	for _, v := range list {
		if v.ID == id || id == 0 && len(list) == 1 {
			return v, nil
		}
	}
	if id == 0 && len(list) > 1 {
		return VolumeInfo{}, errs.New(errs.InvalidArgument, op, "%d removed volumes are called %s, among them %d and %d", len(list), n, list[0].ID, list[1].ID).
			WithHint("say which one with --id; `strake volume ls --removed` tells when each was removed")
	}
	what := n.String()
	if id != 0 {
		what = fmt.Sprintf("%s with id %d", n, id)
	}
	return VolumeInfo{}, errs.New(errs.NotFound, op, "there is no removed volume %s", what).WithHint("`strake volume ls --removed` lists them")
}

func volumeInfo(v *pb.Volume) VolumeInfo {
	if v == nil {
		return VolumeInfo{}
	}
	info := VolumeInfo{
		ID: v.Id, Name: layout.VolumeName{Tenant: v.Tenant, Volume: v.Name}.String(), Size: int64(v.SizeBytes),
		K: int(v.GetGeometry().GetK()), M: int(v.GetGeometry().GetM()), Class: className(v),
		State: v.State, Holder: v.Holder, Epoch: v.Epoch, Segments: v.Segments, Unsealed: v.Unsealed,
		StoredBytes: v.StoredBytes, ReservedBytes: v.ReservedBytes, MapRoot: v.RootNumber, Undecided: v.Undecided, Blocked: v.Blocked,
	}
	for _, l := range v.Losses {
		info.Losses = append(info.Losses, Loss{l.Epoch, l.Cut, l.By, time.Unix(int64(l.AtUnix), 0).UTC()})
	}
	info.LiveBytes, info.Inherited, info.GarbageBytes, info.Flattening = v.LiveBytes, v.InheritedBytes, v.GarbageBytes, v.Flattening
	info.Snapshots, info.SnapshotBytes, info.Origin = v.Snapshots, v.SnapshotBytes, v.OriginName
	if v.RemovedAtUnix != 0 {
		info.RemovedAt = time.Unix(int64(v.RemovedAtUnix), 0).UTC()
	}
	return info
}

// parseName parses a volume's name; a snapshot part is refused here.
func parseName(op, name string) (layout.VolumeName, error) {
	n, err := layout.ParseVolumeName(name)
	if err != nil {
		return n, errs.As(err, errs.InvalidArgument, "%s", op)
	}
	if n.Snapshot != "" {
		return n, errs.New(errs.InvalidArgument, op, "%q names a snapshot, a volume is wanted", name).WithHint("leave out @%s", n.Snapshot)
	}
	return n, nil
}

// className gives the name of a volume's default class.
func className(v *pb.Volume) string {
	if name := v.GetClassName(); name != "" {
		return name
	}
	return layout.Class(v.GetClass()).String()
}
