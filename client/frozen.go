package client

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// closeSnapshotTimeout bounds the call that gives a snapshot up; the session's
	// end does it too.
	closeSnapshotTimeout = 2 * time.Second
	// pinPause is the wait after a new session could not take a snapshot over; it
	// doubles up to pinLongest.
	pinPause   = 50 * time.Millisecond
	pinLongest = 2 * time.Second
)

// frozen is the snapshot that a handle reads.
type frozen struct {
	id  uint64
	seq layout.Seq
}

// OpenSnapshot opens a snapshot or a tag (`volume@name`, of a tag also
// `volume@digest`) for reading. It stays
// readable until it is closed, also when it is removed meanwhile. Errors:
// ErrNotFound, ErrUnavailable.
func (c *Cell) OpenSnapshot(ctx context.Context, name string) (*Volume, error) {
	if n, err := layout.ParseVolumeName(name); err == nil && n.Snapshot == "" {
		return nil, errs.New(errs.InvalidArgument, "open snapshot "+name, "it names a volume").WithHint("a snapshot is volume@name")
	}
	return c.Open(ctx, name, OpenOptions{})
}

// OpenDigest opens any of a tenant's tags with a content digest, 64 hexadecimal
// digits, for reading: all of them have the same content, but for zeros at the end, which
// count for nothing: their sizes may differ (see Volume.Size). tenant "" is "default". Error:
// ErrNotFound.
func (c *Cell) OpenDigest(ctx context.Context, tenant, digest string) (*Volume, error) {
	op := "open tag " + digest
	if !layout.IsDigest(digest) {
		return nil, errs.New(errs.InvalidArgument, op, "it is no digest").WithHint("a digest has %d hexadecimal digits, in lower case", layout.DigestDigits)
	}
	return c.openDigest(ctx, op, layout.VolumeName{Tenant: tenant, Snapshot: digest})
}

func (c *Cell) openDigest(ctx context.Context, op string, n layout.VolumeName) (*Volume, error) {
	f, err := c.tagByDigest(ctx, op, n)
	if err != nil {
		return nil, err
	}
	return c.openPinned(ctx, &pb.OpenSnapshotRequest{Id: f.Id})
}

// tagByDigest finds a tag by the digest that stands in place of its name.
func (c *Cell) tagByDigest(ctx context.Context, op string, n layout.VolumeName) (*pb.Snapshot, error) {
	b, err := hex.DecodeString(n.Snapshot)
	if err != nil {
		return nil, errs.New(errs.InvalidArgument, op, "%s is no digest", n.Snapshot)
	}
	r, err := call(ctx, c, op, func(ctx context.Context, m pb.MetaClient) (*pb.GetSnapshotReply, error) {
		return m.GetSnapshot(ctx, &pb.GetSnapshotRequest{Tenant: n.Tenant, Volume: n.Volume, Digest: b})
	})
	return r.GetSnapshot(), err
}

// findSnapshot parses volume@snapshot, or volume@digest, of which it looks up the tag's
// name.
func (c *Cell) findSnapshot(ctx context.Context, op, name string) (layout.VolumeName, error) {
	n, err := parseSnapshot(op, name)
	if err != nil || !layout.IsDigest(n.Snapshot) {
		return n, err
	}
	f, err := c.tagByDigest(ctx, op, n)
	if err == nil {
		n.Snapshot = f.Name
	}
	return n, err
}

func (c *Cell) openFrozen(ctx context.Context, n layout.VolumeName, _ OpenOptions) (*Volume, error) {
	if layout.IsDigest(n.Snapshot) {
		return c.openDigest(ctx, "open tag "+n.String(), n)
	}
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

// pinAgain has a new session keep what the lost one did, and repeats that until it is
// done or the session is lost too. A snapshot that was removed meanwhile is gone: reads
// of it may fail from now on.
func (c *Cell) pinAgain(ctx context.Context, session layout.SessionID) {
	c.mu.Lock()
	var ids []uint64
	for id := range c.pins {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for wait := pinPause; ; wait = min(2*wait, pinLongest) {
		ids = slices.DeleteFunc(ids, func(id uint64) bool { return c.pinOnce(ctx, session, id) })
		if len(ids) == 0 {
			return
		}
		pause(ctx, wait)
		if ctx.Err() != nil || c.session.current() != session {
			return
		}
	}
}

// pinOnce tries to have a session keep a snapshot; false: it is to be tried again.
func (c *Cell) pinOnce(ctx context.Context, session layout.SessionID, id uint64) bool {
	c.mu.Lock()
	wanted := c.pins[id] > 0
	c.mu.Unlock()
	if !wanted {
		return true // closed meanwhile
	}
	err := c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.OpenSnapshot(ctx, &pb.OpenSnapshotRequest{Session: uint64(session), Id: id})
		return err
	})
	switch errs.KindOf(err) {
	case errs.OK:
		return true
	case errs.NotFound:
		c.cfg.Logger.Warn("open snapshot lost with its session", "snapshot", id, "err", err)
		return true
	}
	return ctx.Err() != nil
}
