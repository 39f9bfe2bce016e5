package client

import (
	"context"
	"strings"
	"time"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// decideTries is how often the shards are asked before a recovery gives up.
	decideTries = 4
	// decidePause is the wait before the second try; it doubles.
	decidePause = 250 * time.Millisecond
	// blockedTimeout bounds the call that records what blocks a recovery.
	blockedTimeout = 2 * time.Second
)

// recover ends the epochs of older writers (design §6): fence, decide, copy the
// tail, and record the cut with a seal for every unsealed segment in one entry.
// It gives the log's last seq.
func (l lease) recover(ctx context.Context, granted *pb.AcquireLeaseReply) (layout.Seq, error) {
	in, unsealed := recoveryInput(granted)
	plan, err := l.decide(ctx, &in, unsealed)
	if err != nil {
		return 0, err
	}
	return plan.Cut, l.carryOut(ctx, plan, in, unsealed, nil)
}

// recoveryInput sorts a volume's segments: what is sealed, and what must be asked.
func recoveryInput(granted *pb.AcquireLeaseReply) (in recovery.Input, unsealed []*segment) {
	// Segments that the newest root covers are not listed, nor are an origin's here.
	in.Covers = layout.Seq(granted.Open.GetRoot().GetCovers())
	for _, a := range granted.Open.Ancestors {
		in.Covers = max(in.Covers, layout.Seq(a.Limit))
	}
	in.LastCut = max(layout.Seq(granted.LastSeq), in.Covers)
	for _, p := range granted.Open.Segments {
		s := segmentFromPB(p)
		switch {
		case s.isMap:
		case !s.sealed:
			unsealed = append(unsealed, s)
		default:
			in.Sealed = append(in.Sealed, recovery.Sealed{First: layout.Seq(p.Seal.FirstSeq), Last: s.last, Count: p.Seal.Count})
		}
	}
	return in, unsealed
}

// carryOut does what the plan for an input says. accepted is the seq after which people
// accepted loss, nil when nothing is given up. Then the tail need not be copied when
// there are too few servers to copy it to: the seals hold it where it is, and the shards
// that lack it are made again when their servers are back.
func (l lease) carryOut(ctx context.Context, plan recovery.Plan, in recovery.Input, unsealed []*segment, accepted *layout.Seq) error {
	copies, err := l.copyTail(ctx, plan, unsealed, in.SilentServers())
	switch {
	case err == nil:
	case accepted != nil && errs.KindOf(err) == errs.Frozen:
		plan.Seals = plan.InPlace
	default:
		return errs.Wrap(err, "copy the log's tail")
	}
	request := l.closing(plan)
	if accepted != nil {
		request.AcceptLoss, request.AcceptAfter = true, uint64(*accepted)
	}
	if err := l.closeEpoch(ctx, request); err != nil {
		return errs.Wrap(err, "close the epoch")
	}
	if copies == nil {
		return nil
	}
	return errs.Wrap(l.seal(ctx, *copies), "seal the tail's copy")
}

// decide fences and asks until the answers allow a decision; the last answers stand
// in the input. What blocks it is recorded for people to see.
func (l lease) decide(ctx context.Context, in *recovery.Input, unsealed []*segment) (recovery.Plan, error) {
	wait := decidePause
	for try := 1; ; try++ {
		var err error
		if in.Segments, err = l.fence(ctx, *in, unsealed); err != nil {
			return recovery.Plan{}, err
		}
		plan, err := recovery.Decide(*in)
		kind := errs.KindOf(err)
		if kind != errs.Unavailable && kind != errs.Undecided {
			return plan, err
		}
		if try == decideTries || ctx.Err() != nil {
			l.recordBlocked(ctx, plan.Blocked)
			return plan, err
		}
		pause(ctx, wait)
		wait *= 2
	}
}

// recordBlocked has people see what blocks a recovery, at its best.
func (l lease) recordBlocked(ctx context.Context, blocked []recovery.Blocker) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), blockedTimeout)
	defer cancel()
	request := l.closing(recovery.Plan{})
	request.Undecided = blockedText(blocked)
	_ = l.closeEpoch(ctx, request)
}

func blockedText(list []recovery.Blocker) string {
	var text []string
	for _, b := range list[:min(len(list), 8)] {
		text = append(text, b.String())
	}
	return strings.Join(text, "; ")
}

// closing is the command that records a decision.
func (l lease) closing(plan recovery.Plan) *pb.CloseEpochRequest {
	request := &pb.CloseEpochRequest{Command: newCommand(), Volume: uint64(l.volume), Epoch: uint64(l.epoch), Cut: uint64(plan.Cut)}
	for _, s := range plan.Seals {
		request.Seals = append(request.Seals, sealToPB(s))
	}
	return request
}

// closeEpoch records the decision, or why there is none.
func (l lease) closeEpoch(ctx context.Context, request *pb.CloseEpochRequest) error {
	return l.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.CloseEpoch(ctx, request)
		return err
	})
}

// Janitor recovers volumes whose writer is gone, and cleans those that nobody
// writes, for a chunk server that the metadata leader asks to. Each recovery has a session of its own, so that it
// never holds a lease longer than its work. Safe for concurrent use.
type Janitor struct{ cfg Config }

// NewJanitor makes a janitor; it connects when it is first asked.
func NewJanitor(cfg Config) *Janitor { return &Janitor{cfg: cfg} }

// Close ends the janitor. It holds nothing between recoveries.
func (j *Janitor) Close() error { return nil }

// RecoverVolume recovers a volume and seals what its writer left. undecided says
// what blocks it, with an error of kind Undecided or Unavailable. A volume that
// a live writer holds is left alone: ErrLeaseHeld.
func (j *Janitor) RecoverVolume(ctx context.Context, id layout.VolumeID, reason string) (cut layout.Seq, sealed int, undecided string, err error) {
	cell, err := Dial(ctx, j.cfg)
	if err != nil {
		return 0, 0, "", err
	}
	defer cell.Close()
	j.cfg.withDefaults().Logger.Info("recovering volume", "volume", id, "reason", reason)
	r, err := cell.recoverVolume(ctx, id)
	if kind := errs.KindOf(err); kind == errs.Undecided || kind == errs.Unavailable {
		return 0, 0, err.Error(), err
	}
	return r.cut, r.sealed, "", err
}

type recovered struct {
	cut    layout.Seq
	sealed int
}

// recoverVolume takes the lease, recovers, and gives the lease back.
func (c *Cell) recoverVolume(ctx context.Context, id layout.VolumeID) (recovered, error) {
	l, granted, last, err := c.takeOver(ctx, &pb.AcquireLeaseRequest{Volume: uint64(id)})
	if err != nil {
		return recovered{}, err
	}
	r := recovered{cut: last}
	for _, s := range granted.Open.Segments {
		if s.Seal != nil {
			r.sealed++
		}
	}
	return r, errs.Wrap(l.release(ctx, last), "give the lease back")
}
