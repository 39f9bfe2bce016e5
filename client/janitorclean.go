package client

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// yieldTries bounds how often a command asks a janitor for its volume: another may
// have begun on it meanwhile.
const yieldTries = 5

// CleanVolume cleans, or flattens, a volume that nobody writes, until nothing is
// worth it. It has a session of its own, from which anybody who opens the volume
// takes it at once; all its work is of class background. Errors: ErrLeaseHeld
// (somebody writes it, and cleans it himself), ErrLeaseLost and ErrStaleEpoch
// (somebody opened it meanwhile), ErrNotFound, ErrNoSpace.
func (j *Janitor) CleanVolume(ctx context.Context, id layout.VolumeID, reason string) (moved, garbage uint64, err error) {
	cfg := j.cfg
	cfg.janitor = true
	cell, err := Dial(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	defer cell.Close()
	j.cfg.withDefaults().Logger.Info("cleaning volume", "volume", id, "reason", reason)
	r, err := cell.cleanVolume(ctx, id)
	return uint64(r.Moved), uint64(r.Garbage), err
}

func (c *Cell) cleanVolume(ctx context.Context, id layout.VolumeID) (r CleanReport, err error) {
	v, err := c.openLeased(ctx, &pb.AcquireLeaseRequest{Volume: uint64(id)}, layout.ClassBackground)
	if err != nil {
		return r, errs.Wrap(err, "open volume %d", id)
	}
	defer func() { // its lease must not hang until the session is over
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if e := v.CloseContext(end); err == nil {
			err = e
		}
	}()
	r, err = v.w.clean.clean(ctx, false)
	return r, errs.Wrap(err, "clean %s", v.name)
}

// yielded runs a command that wants a volume without a writer. A janitor that has it
// gives way.
func (c *Cell) yielded(ctx context.Context, n layout.VolumeName, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		if errs.KindOf(err) != errs.LeaseHeld || try == yieldTries || ctx.Err() != nil || c.takeFromJanitor(ctx, n) != nil {
			return err
		}
	}
}

// takeFromJanitor ends a janitor's work on a volume. Error: ErrLeaseHeld when it is
// no janitor who has it.
func (c *Cell) takeFromJanitor(ctx context.Context, n layout.VolumeName) error {
	if err := c.enter("take the volume over", n.String(), false); err != nil {
		return err
	}
	defer c.leave(n.String())
	return c.shutOut(ctx, n, false)
}
