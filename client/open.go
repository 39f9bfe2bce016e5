package client

import (
	"context"
	"time"

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

// Open opens a volume, or a snapshot of one for reading (volume@snapshot). A writer whose predecessor did not close recovers the
// volume first: every flushed write is there. Errors: ErrNotFound, ErrLeaseHeld
// (names the holder), ErrUndecided (names the server and shard that must come
// back), ErrUnavailable. One for writing whose ctx ends before the metadata service has
// answered takes up to 2 s more, to let go of a lease that it may have got.
func (c *Cell) Open(ctx context.Context, name string, o OpenOptions) (*Volume, error) {
	op := "open volume " + name
	n, err := layout.ParseVolumeName(name)
	if err != nil {
		return nil, errs.As(err, errs.InvalidArgument, "%s", op)
	}
	var class uint32
	if o.Class != "" {
		if class, err = c.classNumber(ctx, op, o.Class); err != nil {
			return nil, err
		}
	}
	open := c.openReader
	switch {
	case n.Snapshot != "" && o.Write:
		return nil, errs.New(errs.ReadOnly, op, "a snapshot takes no writes").WithHint("make a clone of it: `strake volume clone %s NAME`", name)
	case n.Snapshot != "":
		open = c.openFrozen
	case o.Write:
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
		if err := c.recoverElsewhere(ctx, layout.VolumeID(r.Volume.Id)); err != nil {
			return nil, err
		}
		if r, err = c.view(ctx, n); err != nil {
			return nil, err
		}
	}
	v := c.newVolume(r.Volume)
	return v, v.follow(ctx, n, r)
}

// recoverElsewhere recovers a volume under a session of its own, which takes
// the lease with it if that fails.
func (c *Cell) recoverElsewhere(ctx context.Context, id layout.VolumeID) error {
	_, _, _, err := NewJanitor(c.cfg).RecoverVolume(ctx, id, "it is opened for reading")
	if errs.KindOf(err) == errs.LeaseHeld {
		return nil // somebody writes it now
	}
	return err
}

func (c *Cell) openWriter(ctx context.Context, n layout.VolumeName, o OpenOptions) (*Volume, error) {
	if err := c.enter("acquire lease", n.String(), o.Force); err != nil {
		return nil, err
	}
	defer c.leave(n.String())
	return c.openLeased(ctx, &pb.AcquireLeaseRequest{Tenant: n.Tenant, Name: n.Volume, Force: o.Force}, 0)
}

// openLeased opens a volume for writing; class 0 is the volume's own.
func (c *Cell) openLeased(ctx context.Context, request *pb.AcquireLeaseRequest, class layout.Class) (*Volume, error) {
	l, granted, last, err := c.takeOver(ctx, request)
	if err != nil {
		return nil, err
	}
	v := c.newVolume(granted.Open.Volume)
	if class != 0 {
		v.class = class
	}
	if err := v.loadAll(ctx, granted.Open, last); err != nil {
		l.giveUp(ctx, last)
		return nil, err
	}
	v.startWriter(l, last, granted.Open)
	if err := c.adopt(v); err != nil {
		v.stop(err)
		c.maps.forget(v)
		l.giveUp(ctx, last)
		return nil, err
	}
	return v, nil
}

// giveUpTimeout bounds the release of a lease that nobody uses.
const giveUpTimeout = 2 * time.Second

// giveUp gives back the lease of a volume that was not written, at its best.
func (l lease) giveUp(ctx context.Context, last layout.Seq) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTimeout)
	defer cancel()
	if l.release(ctx, last) != nil {
		l.abandon(ctx)
	}
}

// takeOver acquires a volume's lease and recovers what older writers left. It
// gives the lease with the view after recovery, and the log's last seq. With an
// error the lease is let go.
func (c *Cell) takeOver(ctx context.Context, request *pb.AcquireLeaseRequest) (lease, *pb.AcquireLeaseReply, layout.Seq, error) {
	l, granted, err := c.acquire(ctx, request)
	if err != nil || granted.Clean {
		return l, granted, layout.Seq(granted.GetLastSeq()), err
	}
	volume := granted.Open.Volume
	recovered := c.waits.begin("recover "+volume.Name, "the servers of its unsealed segments are asked what they have")
	last, err := l.recover(ctx, granted)
	recovered()
	if err != nil {
		l.abandon(ctx)
		return l, nil, 0, errs.Wrap(err, "recover")
	}
	granted.Open, err = c.view(ctx, layout.VolumeName{Tenant: volume.Tenant, Volume: volume.Name})
	switch {
	case err != nil:
	case granted.Open.Volume.Id != volume.Id: // renamed or rolled back, and the name is another's
		err = errs.New(errs.StaleEpoch, "", "another volume took the name while it was being recovered").WithHint("open it again")
	case granted.Open.Volume.Epoch != granted.Epoch: // its map would show a later writer's stripes
		err = errs.New(errs.StaleEpoch, "", "epoch %d took the volume over while it was being recovered", granted.Open.Volume.Epoch)
	}
	if err != nil {
		l.abandon(ctx)
	}
	return l, granted, last, err
}

// acquire takes a volume's lease under this cell's session.
func (c *Cell) acquire(ctx context.Context, request *pb.AcquireLeaseRequest) (lease, *pb.AcquireLeaseReply, error) {
	l := lease{cell: c, session: c.session.current()}
	request.Command, request.Session = newCommand(), uint64(l.session)
	granted, err := call(ctx, c, "acquire lease", func(ctx context.Context, m pb.MetaClient) (*pb.AcquireLeaseReply, error) {
		return m.AcquireLease(ctx, request)
	})
	if err != nil {
		if !settled(err) {
			l.letGoUnseen(ctx, request)
		}
		return l, nil, err
	}
	c.places.learn(granted.Open.Segments, granted.Open.Servers)
	l.volume, l.epoch = layout.VolumeID(granted.Open.Volume.Id), layout.Epoch(granted.Epoch)
	return l, granted, nil
}

// settled tells whether a failed command was answered: else it may have been, or may
// yet be, carried out.
func settled(err error) bool {
	switch errs.KindOf(err) {
	case errs.Canceled, errs.Deadline, errs.Unavailable:
		return false
	}
	return true
}

// letGoUnseen abandons a lease that may have been taken without its caller hearing of
// it, who would keep it from others for as long as the process lives. The repeat of the
// command tells its epoch. At its best.
func (l lease) letGoUnseen(ctx context.Context, request *pb.AcquireLeaseRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTimeout)
	defer cancel()
	_ = l.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		granted, err := m.AcquireLease(ctx, request)
		if err == nil {
			l.volume, l.epoch = layout.VolumeID(granted.Open.Volume.Id), layout.Epoch(granted.Epoch)
			l.abandon(ctx)
		}
		return err
	})
}

// view asks for what a reader needs: root, cuts and the segments to replay.
func (c *Cell) view(ctx context.Context, n layout.VolumeName) (*pb.OpenVolumeReply, error) {
	r, err := call(ctx, c, "open volume", func(ctx context.Context, m pb.MetaClient) (*pb.OpenVolumeReply, error) {
		return m.OpenVolume(ctx, &pb.OpenVolumeRequest{Session: uint64(c.session.current()), Tenant: n.Tenant, Name: n.Volume})
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
	v := &Volume{
		cell: c, id: layout.VolumeID(p.Id), class: layout.Class(p.Class), tenant: layout.TenantOf(p.Tenant),
		name:     layout.VolumeName{Tenant: p.Tenant, Volume: p.Name}.String(),
		geometry: layout.Geometry{K: uint8(p.GetGeometry().GetK()), M: uint8(p.GetGeometry().GetM())},
		ended:    make(chan struct{}),
	}
	v.size.Store(int64(p.SizeBytes))
	return v
}
