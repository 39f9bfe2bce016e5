package replica

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// maxProposals bounds the proposals under way at once.
const maxProposals = 4096

// MaxCommand bounds one command, in bytes.
const MaxCommand = 1 << 20

// Propose puts a command to the log and gives what Apply gave. raft batches
// concurrent proposals into one write.
//
// Errors: NotLeader, with the leader's address; Overloaded; Deadline or Canceled
// when ctx ends first, and Unavailable when leadership was lost: in both cases
// the command may still be carried out, and the caller repeats it under the
// same id.
func (r *Replica) Propose(ctx context.Context, command []byte) (any, error) {
	if len(command) > MaxCommand {
		return nil, errs.New(errs.TooLarge, "propose", "the command has %d bytes, at most %d are allowed", len(command), MaxCommand)
	}
	rf, err := r.started()
	if err != nil {
		return nil, err
	}
	if err := r.disk.guard.failure(); err != nil {
		return nil, errs.As(err, errs.Unavailable, "propose")
	}
	select {
	case r.proposals <- struct{}{}:
	default:
		return nil, errs.New(errs.Overloaded, "propose", "%d commands are under way", maxProposals)
	}
	type answer struct {
		result any
		err    error
	}
	answers := make(chan answer, 1)
	if !r.ask(func() {
		defer func() { <-r.proposals }()
		f := rf.Apply(command, 0)
		if err := f.Error(); err != nil {
			answers <- answer{err: err}
			return
		}
		answers <- answer{result: f.Response()}
	}) {
		<-r.proposals
		return nil, r.typed(raft.ErrRaftShutdown, "propose")
	}
	select {
	case a := <-answers:
		if err := r.disk.guard.failure(); err != nil { // raft answers also for a command that could not be applied
			return nil, errs.As(err, errs.Unavailable, "propose: the outcome is open")
		}
		return a.result, r.typed(a.err, "propose")
	case <-r.closed:
		return nil, r.typed(raft.ErrRaftShutdown, "propose")
	case <-ctx.Done():
		return nil, errs.Wrap(ctx.Err(), "propose: no answer in time, the outcome is open")
	}
}

// await waits for one of raft's futures, or until Close.
func (r *Replica) await(future func() raft.Future) error {
	if err := r.disk.guard.failure(); err != nil {
		return err
	}
	answers := make(chan error, 1)
	if !r.ask(func() { answers <- future().Error() }) {
		return raft.ErrRaftShutdown
	}
	select {
	case err := <-answers:
		return err
	case <-r.closed:
		return raft.ErrRaftShutdown
	}
}

// typed gives raft's errors their kinds.
func (r *Replica) typed(err error, op string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader):
		return r.notLeader(op)
	case errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return errs.As(err, errs.Unavailable, "%s", op)
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore):
		return errs.As(err, errs.Unavailable, "%s: the outcome is open", op)
	case errors.Is(err, raft.ErrRaftShutdown):
		return errs.As(err, errs.Unavailable, "%s: this server is stopping", op)
	}
	return errs.As(err, errs.Unavailable, "%s", op)
}

// notLeader is the refusal that points to the leader.
func (r *Replica) notLeader(op string) error {
	e := errs.New(errs.NotLeader, op, "%s does not lead", r.id)
	e.Leader = r.Leader()
	if e.Leader == string(r.id) {
		e.Leader = "" // elected, but not caught up yet
	}
	if e.Leader == "" {
		e.Hint = "the cell has no leader now; most of its metadata servers must be up"
	}
	return e
}
