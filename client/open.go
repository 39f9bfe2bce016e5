package client

import (
	"context"

	"strake/client/internal/extent"
	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// OpenOptions say how a volume is opened.
type OpenOptions struct {
	// Write takes the volume's lease; without it the handle reads what was
	// durable when it was opened, or at the last Refresh.
	Write bool
	// Force takes the lease from a live writer, which is shut out at once.
	Force bool
	// Class is the QoS class of this handle's I/O; "" is the volume's default.
	Class string
}

// Open opens a volume. A writer whose predecessor did not close recovers the
// volume first: every flushed write is there. Errors: ErrNotFound, ErrLeaseHeld
// (names the holder), ErrUndecided (names the server and shard that must come
// back), ErrUnavailable.
func (c *Cell) Open(ctx context.Context, name string, o OpenOptions) (*Volume, error) {
	op := "open volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return nil, err
	}
	var class uint32
	if o.Class != "" {
		if class, err = classNumber(op, o.Class); err != nil {
			return nil, err
		}
	}
	open := c.openReader
	if o.Write {
		open = c.openWriter
	}
	v, err := open(ctx, n, o)
	if err != nil {
		return nil, errs.Wrap(err, "%s", op)
	}
	if class != 0 {
		v.class = layout.Class(class)
	}
	return v, nil
}

func (c *Cell) openReader(ctx context.Context, n layout.VolumeName, _ OpenOptions) (*Volume, error) {
	r, err := c.view(ctx, n)
	if err != nil {
		return nil, err
	}
	if r.Volume.HolderSession == 0 && hasUnsealed(r) {
		if _, err := c.recoverVolume(ctx, layout.VolumeID(r.Volume.Id)); err != nil && errs.KindOf(err) != errs.LeaseHeld {
			return nil, err
		}
		if r, err = c.view(ctx, n); err != nil {
			return nil, err
		}
	}
	v := c.newVolume(r.Volume)
	return v, v.load(ctx, r)
}

func (c *Cell) openWriter(ctx context.Context, n layout.VolumeName, o OpenOptions) (*Volume, error) {
	granted, last, err := c.takeOver(ctx, &pb.AcquireLeaseRequest{Tenant: n.Tenant, Name: n.Volume, Force: o.Force})
	if err != nil {
		return nil, err
	}
	v := c.newVolume(granted.Open.Volume)
	if err := v.load(ctx, granted.Open); err != nil {
		return nil, err
	}
	v.startWriter(layout.Epoch(granted.Epoch), last, granted.Open.GetRoot().GetNumber())
	if err := c.adopt(v); err != nil {
		v.lose(err)
		v.stop()
		return nil, err
	}
	return v, nil
}

// takeOver acquires a volume's lease and recovers what older writers left. It
// gives the lease with the view after recovery, and the log's last seq.
func (c *Cell) takeOver(ctx context.Context, request *pb.AcquireLeaseRequest) (*pb.AcquireLeaseReply, layout.Seq, error) {
	request.Command, request.Session = newCommand(), uint64(c.session.id)
	granted, err := call(ctx, c, "acquire the lease", func(ctx context.Context, m pb.MetaClient) (*pb.AcquireLeaseReply, error) {
		return m.AcquireLease(ctx, request)
	})
	if err != nil {
		return nil, 0, err
	}
	c.places.learn(granted.Open.Segments, granted.Open.Servers)
	if granted.Clean {
		return granted, layout.Seq(granted.LastSeq), nil
	}
	volume := granted.Open.Volume
	l := lease{c, layout.VolumeID(volume.Id), layout.Epoch(granted.Epoch)}
	last, err := l.recover(ctx, granted)
	if err != nil {
		return nil, 0, errs.Wrap(err, "recover")
	}
	granted.Open, err = c.view(ctx, layout.VolumeName{Tenant: volume.Tenant, Volume: volume.Name})
	return granted, last, err
}

// view asks for what a reader needs: root, cuts and the segments to replay.
func (c *Cell) view(ctx context.Context, n layout.VolumeName) (*pb.OpenVolumeReply, error) {
	r, err := call(ctx, c, "look the volume up", func(ctx context.Context, m pb.MetaClient) (*pb.OpenVolumeReply, error) {
		return m.OpenVolume(ctx, &pb.OpenVolumeRequest{Session: uint64(c.session.id), Tenant: n.Tenant, Name: n.Volume})
	})
	if err == nil {
		c.places.learn(r.Segments, r.Servers)
	}
	return r, err
}

func hasUnsealed(r *pb.OpenVolumeReply) bool {
	for _, s := range r.Segments {
		if s.Seal == nil && !s.Map {
			return true
		}
	}
	return false
}

func (c *Cell) newVolume(p *pb.Volume) *Volume {
	return &Volume{
		cell: c, id: layout.VolumeID(p.Id), size: int64(p.SizeBytes), class: layout.Class(p.Class),
		name:     layout.VolumeName{Tenant: p.Tenant, Volume: p.Name}.String(),
		geometry: layout.Geometry{K: uint8(p.GetGeometry().GetK()), M: uint8(p.GetGeometry().GetM())},
	}
}

// load builds the extent map: the newest root, and the stripes after it.
func (v *Volume) load(ctx context.Context, r *pb.OpenVolumeReply) error {
	tree := extent.New()
	if r.GetRoot().GetNumber() > 0 {
		var err error
		if tree, err = extent.Open(extent.Root(r.Root.Page)); err != nil {
			return errs.Wrap(err, "read map root %d", r.Root.Number)
		}
	}
	var cuts []recovery.Cut
	for _, k := range r.Cuts {
		cuts = append(cuts, recovery.Cut{Before: layout.Epoch(k.BeforeEpoch), Seq: layout.Seq(k.Seq)})
	}
	headers, err := v.cell.replayHeaders(ctx, v.id, tree.Covers(), r.Segments)
	if err != nil {
		return errs.Wrap(err, "replay the log after seq %d", tree.Covers())
	}
	for _, h := range recovery.Replay(headers, cuts) {
		if h.Seq > tree.Applied()+1 {
			return errs.New(errs.Corrupt, "replay the log", "seq %d is missing, the next is %d", tree.Applied()+1, h.Seq)
		}
		if err := tree.Apply(h); err != nil {
			return err
		}
	}
	v.mu.Lock()
	v.tree = tree
	v.mu.Unlock()
	return nil
}

// Refresh brings a read-only handle up to what is durable now. On a writer's
// handle it does nothing: that is always up to date.
func (v *Volume) Refresh(ctx context.Context) error {
	if v.w != nil {
		return nil
	}
	n, err := parseName("refresh "+v.name, v.name)
	if err != nil {
		return err
	}
	r, err := v.cell.view(ctx, n)
	if err != nil {
		return err
	}
	return v.load(ctx, r)
}
