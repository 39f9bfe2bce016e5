package simclient

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
)

const (
	// barrierTimeout bounds the flush for a barrier: who asked waits no longer.
	barrierTimeout = 5 * time.Second
	recoverPause   = 250 * time.Millisecond
	recoverTries   = 20
	yieldTries     = 5
)

// Requests to the metadata service about snapshots and branches, and their replies.
// Volumes go by name.
type (
	AnswerBarrier struct {
		Session layout.SessionID
		Volume  layout.VolumeID
		Barrier uint64
		Epoch   layout.Epoch
		Seq     layout.Seq
	}
	CreateSnapshot struct {
		Command      uint64
		Volume, Name string
	}
	RemoveSnapshot struct {
		Command      uint64
		Volume, Name string
	}
	OpenSnapshot struct {
		Session      layout.SessionID
		Volume, Name string
		Snapshot     layout.SnapshotID // in place of names
	}
	OpenedSnapshot struct {
		ID     layout.SnapshotID
		Volume layout.VolumeID
		Seq    layout.Seq
		Open   *Opened
	}
	CloseSnapshot struct {
		Session  layout.SessionID
		Snapshot layout.SnapshotID
	}
	CloneVolume struct {
		Command              uint64
		Volume, Snapshot, To string
	}
	RollbackVolume struct {
		Command          uint64
		Volume, Snapshot string
	}
	FlattenVolume struct{ Volume string }
	RemoveVolume  struct {
		Command uint64
		Volume  string
	}
	GetVolume struct{ Volume layout.VolumeID }
)

// barrier flushes, and tells the metadata service up to which seq all is durable.
func (w *writer) barrier(f *Fiber, id uint64) {
	until := w.now() + barrierTimeout
	if !planted.Is(planted.BarrierUnflushed) && w.v.FlushWait(f) != nil || w.now() > until {
		return
	}
	request := &AnswerBarrier{Session: w.c.session.ID, Volume: w.v.ID, Barrier: id, Epoch: w.epoch, Seq: w.core.FlushedSeq()}
	if planted.Is(planted.BarrierUnflushed) {
		request.Seq = w.core.Acked()
	}
	_, _ = metaCall[*Kept](w.c, f, until-w.now(), attemptTimeout, request)
}

// demand makes a request that a volume which wants recovery, or that a janitor has,
// does not stop.
func (c *Client) demand(f *Fiber, volume string, request any) error {
	for try := 1; ; try++ {
		_, err := metaCall[any](c, f, 2*barrierTimeout, barrierTimeout+recoverPause, request)
		if errs.KindOf(err) != errs.Busy || try == recoverTries || f.dead {
			return err
		}
		o, err := c.view(f, OpenVolume{Name: volume})
		if err != nil {
			return err
		}
		if o.Volume.Holder == 0 && hasUnsealed(o) {
			if _, err := c.Recover(f, o.Volume.ID); err != nil && errs.KindOf(err) != errs.LeaseHeld {
				return err
			}
		}
		if !c.sleep(f, recoverPause) {
			return errKilled
		}
	}
}

// CreateSnapshot freezes a volume.
func (c *Client) CreateSnapshot(f *Fiber, volume, name string) error {
	return c.demand(f, volume, &CreateSnapshot{Command: c.command(), Volume: volume, Name: name})
}

// RemoveSnapshot removes a snapshot, or hides it while something stands on it.
func (c *Client) RemoveSnapshot(f *Fiber, volume, name string) error {
	return c.demand(f, volume, &RemoveSnapshot{Command: c.command(), Volume: volume, Name: name})
}

// CloneVolume makes a volume that begins as a snapshot.
func (c *Client) CloneVolume(f *Fiber, volume, snapshot, to string) error {
	return c.demand(f, volume, &CloneVolume{Command: c.command(), Volume: volume, Snapshot: snapshot, To: to})
}

// FlattenVolume wants a clone to stand alone.
func (c *Client) FlattenVolume(f *Fiber, volume string) error {
	return c.demand(f, volume, &FlattenVolume{Volume: volume})
}

// RemoveVolume removes a volume that nobody writes, for ever.
func (c *Client) RemoveVolume(f *Fiber, volume string) error {
	request := &RemoveVolume{Command: c.command(), Volume: volume}
	return c.yielded(f, volume, func() error { return c.demand(f, volume, request) })
}

// RollbackVolume makes a volume what a snapshot of it is; force shuts its writer out.
func (c *Client) RollbackVolume(f *Fiber, volume, snapshot string, force bool) error {
	if force {
		if err := c.shutOut(f, volume, true); err != nil {
			return err
		}
	}
	request := &RollbackVolume{Command: c.command(), Volume: volume, Snapshot: snapshot}
	return c.yielded(f, volume, func() error { return c.demand(f, volume, request) })
}

// yielded runs a command that wants a volume without a writer. A janitor that has it
// gives way.
func (c *Client) yielded(f *Fiber, volume string, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		if errs.KindOf(err) != errs.LeaseHeld || try == yieldTries || f.dead || c.shutOut(f, volume, false) != nil {
			return err
		}
		c.watch.Rare("a janitor gave way to a command")
	}
}

// shutOut takes a volume from whoever writes it, without force from a janitor alone,
// and leaves it recovered and without a writer.
func (c *Client) shutOut(f *Fiber, volume string, force bool) error {
	_, err := c.recoverWith(f, &AcquireLease{Name: volume, Force: force})
	return err
}

// OpenSnapshot opens a snapshot for reading: until it is closed, or its session
// ends, it stays readable, also when it is removed meanwhile.
func (c *Client) OpenSnapshot(f *Fiber, volume, name string) (*Volume, error) {
	request := &OpenSnapshot{Volume: volume, Name: name}
	for try := 1; ; try++ {
		r, err := c.pin(f, request)
		if err != nil {
			return nil, err
		}
		v := c.newVolume(&r.Open.Volume)
		v.snapshot, v.session = r.ID, request.Session
		if err = v.loadAll(f, r.Open, r.Seq); err == nil {
			return v, nil
		}
		c.unpin(f, r.ID)
		if try == followTries || f.dead {
			return nil, err
		}
	}
}

// Snapshot is the snapshot that a handle reads; 0: none.
func (v *Volume) Snapshot() layout.SnapshotID { return v.snapshot }

func (c *Client) pin(f *Fiber, request *OpenSnapshot) (*OpenedSnapshot, error) {
	request.Session = c.session.ID
	r, err := metaCall[*OpenedSnapshot](c, f, 10*attemptTimeout, attemptTimeout, request)
	if err != nil {
		return nil, errs.Wrap(err, "open snapshot")
	}
	c.learnOpened(r.Open)
	c.pins[r.ID]++
	return r, nil
}

// unpin gives one handle of a snapshot up, at its best.
func (c *Client) unpin(f *Fiber, id layout.SnapshotID) {
	if c.pins[id]--; c.pins[id] > 0 {
		return
	}
	delete(c.pins, id)
	_, _ = metaCall[*Kept](c, f, attemptTimeout, attemptTimeout, &CloseSnapshot{Session: c.session.ID, Snapshot: id})
}

// pinAgain has a new session keep what the lost one did. A snapshot that was removed
// meanwhile is gone.
func (c *Client) pinAgain(f *Fiber) {
	for _, id := range sortedKeys(c.pins) {
		_, _ = metaCall[*OpenedSnapshot](c, f, 10*attemptTimeout, attemptTimeout, &OpenSnapshot{Session: c.session.ID, Snapshot: id})
	}
}

// Holds tells whether a snapshot's handle is still held by a session of the client.
func (c *Client) Holds(v *Volume) bool { return c.pins[v.snapshot] > 0 && c.session.ID == v.session }
