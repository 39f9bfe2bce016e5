package client

import (
	"context"
	"encoding/hex"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// closeSnapshotTimeout bounds the call that gives a snapshot up; the session's
// end does it too.
const closeSnapshotTimeout = 2 * time.Second

// frozen is the snapshot that a handle reads.
type frozen struct {
	id  uint64
	seq layout.Seq
}

// OpenSnapshot opens a snapshot or a tag (`volume@name`) for reading. It stays
// readable until it is closed, also when it is removed meanwhile. Errors:
// ErrNotFound, ErrUnavailable.
func (c *Cell) OpenSnapshot(ctx context.Context, name string) (*Volume, error) {
	if n, err := layout.ParseVolumeName(name); err == nil && n.Snapshot == "" {
		return nil, errs.New(errs.InvalidArgument, "open snapshot "+name, "it names a volume").WithHint("a snapshot is volume@name")
	}
	return c.Open(ctx, name, OpenOptions{})
}

// OpenDigest opens any tag with a content digest, 64 hexadecimal digits, for
// reading: all of them have the same bytes. Error: ErrNotFound.
func (c *Cell) OpenDigest(ctx context.Context, digest string) (*Volume, error) {
	op := "open tag " + digest
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) != digestBytes {
		return nil, errs.New(errs.InvalidArgument, op, "it is no digest").WithHint("a digest has 64 hexadecimal digits")
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.GetSnapshotReply, error) {
		return m.GetSnapshot(ctx, &pb.GetSnapshotRequest{Digest: b})
	})
	if err != nil {
		return nil, err
	}
	return c.openPinned(ctx, &pb.OpenSnapshotRequest{Id: r.Snapshot.Id})
}

func (c *Cell) openFrozen(ctx context.Context, n layout.VolumeName, _ OpenOptions) (*Volume, error) {
	return c.openPinned(ctx, &pb.OpenSnapshotRequest{Tenant: n.Tenant, Volume: n.Volume, Name: n.Snapshot})
}

// openPinned opens a snapshot and has the session keep it. Segments may be sealed
// or moved while their headers are read; a fresh view helps then.
func (c *Cell) openPinned(ctx context.Context, request *pb.OpenSnapshotRequest) (*Volume, error) {
	for try := 1; ; try++ {
		r, err := c.pin(ctx, request)
		if err != nil {
			return nil, err
		}
		v := c.newVolume(r.Open.Volume)
		v.name = layout.VolumeName{Tenant: r.Snapshot.Tenant, Volume: r.Snapshot.VolumeName, Snapshot: r.Snapshot.Name}.String()
		v.frozen = &frozen{id: r.Snapshot.Id, seq: layout.Seq(r.Snapshot.Seq)}
		if err = v.loadAll(ctx, r.Open, v.frozen.seq); err == nil {
			return v, nil
		}
		c.unpin(ctx, r.Snapshot.Id)
		if try == followTries || ctx.Err() != nil {
			return nil, err
		}
	}
}

// pin asks for a snapshot and counts the handle. A call that gives up another handle's
// pin may be carried out after ours, though it began before, or while it was counted:
// then it is waited for, and the snapshot is asked for again.
func (c *Cell) pin(ctx context.Context, request *pb.OpenSnapshotRequest) (*pb.OpenSnapshotReply, error) {
	c.mu.Lock()
	unpins, quiet := c.unpins, len(c.unpinning) == 0
	c.mu.Unlock()
	r, err := c.askPin(ctx, request)
	if err != nil {
		return nil, err
	}
	id := r.Snapshot.Id
	c.mu.Lock()
	c.pins[id]++ // from now on nobody gives it up
	quiet, under := quiet && unpins == c.unpins, c.unpinning[id]
	c.mu.Unlock()
	if quiet {
		return r, nil
	}
	if under != nil {
		<-under
	}
	if r, err = c.askPin(ctx, &pb.OpenSnapshotRequest{Id: id}); err != nil {
		c.unpin(ctx, id)
	}
	return r, err
}

func (c *Cell) askPin(ctx context.Context, request *pb.OpenSnapshotRequest) (*pb.OpenSnapshotReply, error) {
	r, err := call(ctx, c, "open snapshot", func(ctx context.Context, m pb.MetaClient) (*pb.OpenSnapshotReply, error) {
		request.Session = uint64(c.session.current())
		return m.OpenSnapshot(ctx, request)
	})
	if err != nil {
		return nil, err
	}
	c.places.learn(r.Open.Segments, r.Open.Servers)
	for _, a := range r.Open.Ancestors {
		c.places.learn(a.Segments, nil)
	}
	return r, nil
}

// unpin gives one handle of a snapshot up, at its best, within closeSnapshotTimeout.
func (c *Cell) unpin(ctx context.Context, id uint64) {
	c.mu.Lock()
	if c.pins[id]--; c.pins[id] > 0 {
		c.mu.Unlock()
		return
	}
	delete(c.pins, id)
	before, under := c.unpinning[id], make(chan struct{})
	c.unpinning[id] = under
	c.unpins++
	c.mu.Unlock()
	if before != nil {
		<-before
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeSnapshotTimeout)
	defer cancel()
	_ = c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.CloseSnapshot(ctx, &pb.CloseSnapshotRequest{Session: uint64(c.session.current()), Snapshot: id})
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unpinning[id] == under {
		delete(c.unpinning, id)
	}
	close(under)
}

// pinAgain has a new session keep what the lost one did. A snapshot that was
// removed meanwhile is gone: reads of it may fail from now on.
func (c *Cell) pinAgain(ctx context.Context) {
	c.mu.Lock()
	var ids []uint64
	for id := range c.pins {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		err := c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
			_, err := m.OpenSnapshot(ctx, &pb.OpenSnapshotRequest{Session: uint64(c.session.current()), Id: id})
			return err
		})
		if err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("open snapshot lost with its session", "snapshot", id, "err", err)
		}
	}
}
