package client

import (
	"context"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// RecoverOptions say how far a recovery by hand may go.
type RecoverOptions struct {
	// AcceptLoss gives up what can't be decided, should that be above seq LossAfter.
	AcceptLoss bool
	LossAfter  uint64
	// Commit carries it out; without it a loss is only told.
	Commit bool
}

// Recovered is the outcome of a recovery by hand.
type Recovered struct {
	Volume string `json:"volume"`
	// Cut is the log's last seq: all up to there stands and is readable.
	Cut uint64 `json:"cut"`
	// Blocked says why it can't be decided without loss; empty when it can.
	Blocked string `json:"blocked,omitempty"`
	// LostStripes and LostBytes are what some server still showed above the cut;
	// what no server that answered has seen is lost as well.
	LostStripes uint64 `json:"lost_stripes"`
	LostBytes   uint64 `json:"lost_bytes"`
	LastLost    uint64 `json:"last_lost_seq,omitempty"`
	// Done says that the decision is recorded, for ever.
	Done bool `json:"done"`
}

// RecoverVolume recovers a volume whose writer is gone, as opening it does. When
// that can't be decided because too much is out of reach, and AcceptLoss is set, the
// log ends where it stands: what stands stays readable, the rest is given up, and
// the cell keeps on record who did that. Errors: ErrLeaseHeld when somebody writes
// it; ErrUndecided and ErrUnavailable, which name the servers that must come back
// (with AcceptLoss too, where what an earlier recovery decided is out of reach);
// ErrInvalidArgument when more would be lost than was accepted, which names the seq.
func (c *Cell) RecoverVolume(ctx context.Context, name string, o RecoverOptions) (Recovered, error) {
	op := "recover volume " + name
	n, err := parseName(op, name)
	if err != nil {
		return Recovered{}, err
	}
	own, err := Dial(ctx, c.cfg) // its session ends with it, and the lease too
	if err != nil {
		return Recovered{}, err
	}
	defer own.Close()
	r, err := own.recoverByHand(ctx, n, o)
	r.Volume = n.String()
	return r, errs.Wrap(err, "%s", op)
}

// heldBySnapshots adds what people can do about a loss that reaches below a snapshot,
// which must never change.
func heldBySnapshots(err error, granted *pb.AcquireLeaseReply) error {
	frozen := granted.Open.GetVolume().GetFrozenSeq()
	if err == nil || frozen == 0 || frozen < granted.LastSeq {
		return err
	}
	return errs.As(err, errs.KindOf(err), "its newest snapshot holds all up to seq %d", frozen).(*errs.Error).WithHint("bring the servers back; or remove the volume's snapshots first, which gives up what they hold")
}

func (c *Cell) recoverByHand(ctx context.Context, n layout.VolumeName, o RecoverOptions) (Recovered, error) {
	l, granted, err := c.acquire(ctx, &pb.AcquireLeaseRequest{Tenant: n.Tenant, Name: n.Volume})
	if err != nil {
		return Recovered{}, err
	}
	if granted.Clean {
		return Recovered{Cut: granted.LastSeq, Done: true}, l.release(ctx, layout.Seq(granted.LastSeq))
	}
	in, unsealed := recoveryInput(granted)
	plan, err := l.decide(ctx, &in, unsealed)
	var accepted *layout.Seq
	r := Recovered{}
	if kind := errs.KindOf(err); o.AcceptLoss && (kind == errs.Undecided || kind == errs.Unavailable || kind == errs.Corrupt) && ctx.Err() == nil {
		r.Blocked = err.Error()
		after := layout.Seq(o.LossAfter)
		accepted, in.Accept = &after, &after
		plan, err = recovery.Decide(in)
		err = heldBySnapshots(err, granted)
	}
	if err != nil {
		return r, err
	}
	r.Cut, r.LastLost = uint64(plan.Cut), uint64(plan.Lost.Last)
	r.LostStripes, r.LostBytes = plan.Lost.Stripes, plan.Lost.Blocks*layout.BlockSize
	if accepted != nil && !o.Commit {
		return r, nil
	}
	if err := l.carryOut(ctx, plan, in, unsealed, accepted); err != nil {
		return r, err
	}
	r.Done = true
	return r, errs.Wrap(l.release(ctx, plan.Cut), "give the lease back")
}
