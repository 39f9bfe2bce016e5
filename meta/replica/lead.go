package replica

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// loopAlarm is how many snapshots a follower may take over within loopWindow
// before it says that it goes round in circles.
const (
	loopAlarm  = 5
	loopWindow = 10 * time.Minute
)

// watch follows raft's leadership and state. The channel keeps only the newest
// word, so two terms may look like one: each true ends what ran before.
func (r *Replica) watch() {
	states := make(chan raft.Observation, 16)
	observer := raft.NewObserver(states, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.RaftState)
		return ok
	})
	r.raft.RegisterObserver(observer)
	defer r.raft.DeregisterObserver(observer)
	ticker := time.NewTicker(r.opts.Timing.Heartbeat)
	defer ticker.Stop()
	stop := func() {}
	defer func() { stop() }()
	alarm := loopWatch{since: time.Now()}
	for {
		select {
		case <-r.closed:
			return
		case leads := <-r.raft.LeaderCh():
			stop()
			stop = func() {}
			if leads {
				stop = r.lead()
			}
		case <-states:
		case <-ticker.C:
			alarm.look(r)
		}
		if r.raft.State() == raft.Shutdown && r.running() {
			r.disk.guard.fail(errs.New(errs.Closed, "", "%s was removed from the cell", r.id).
				WithHint("to add it again: empty its directory, start it, strake meta add %s", r.id))
			return
		}
	}
}

func (r *Replica) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.closing
}

// lead begins a term of leadership; the function that it returns ends it and
// waits until everything that ran in it has returned.
func (r *Replica) lead() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		term := r.raft.CurrentTerm()
		if !r.catchUp(ctx) {
			return
		}
		r.readyTerm.Store(term)
		defer r.readyTerm.Store(0)
		r.log.Info("leading", "term", term)
		defer r.log.Info("no longer leading", "term", term)
		promoted := make(chan struct{})
		go func() {
			defer close(promoted)
			r.promote(ctx)
		}()
		if r.opts.Lead != nil {
			r.opts.Lead(ctx, term)
		}
		<-promoted
	}()
	return func() {
		r.readyTerm.Store(0)
		cancel()
		<-done
	}
}

// catchUp waits until all that earlier leaders committed is applied. After a failure
// raft's answer does not say that it is.
func (r *Replica) catchUp(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := r.await(func() raft.Future { return r.raft.Barrier(0) })
		if r.disk.guard.failure() != nil {
			return false
		}
		if err == nil {
			return true
		}
		if r.raft.State() != raft.Leader {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.opts.Timing.Commit):
		}
	}
	return false
}

// leading gives the term in which this server leads and has caught up, or
// NotLeader; Unavailable after a failure, as its state may lack what is in the log.
func (r *Replica) leading() (uint64, error) {
	rf, err := r.started()
	if err != nil {
		return 0, err
	}
	if err := r.disk.guard.failure(); err != nil {
		return 0, errs.As(err, errs.Unavailable, "this server ends")
	}
	term := r.readyTerm.Load()
	if term == 0 || rf.State() != raft.Leader || rf.CurrentTerm() != term {
		return 0, r.notLeader("")
	}
	return term, nil
}

// Leading tells whether this server leads and has caught up: nil, or NotLeader
// with the leader's address, or Unavailable before Start. It proves nothing
// about this moment; see Read.
func (r *Replica) Leading() error {
	_, err := r.leading()
	return err
}

// Follows tells whether this server knows the leader and has applied all that it knows
// to be committed; else why not. A server that does not may cost the others their
// majority when the next one is stopped.
func (r *Replica) Follows() error {
	rf, err := r.started()
	if err != nil {
		return err
	}
	if r.Leader() == "" {
		return errs.New(errs.Unavailable, "", "no leader was heard of yet")
	}
	if applied, committed := rf.AppliedIndex(), rf.CommitIndex(); applied+promoteLag < committed {
		return errs.New(errs.Unavailable, "", "entry %d of %d was applied", applied, committed)
	}
	return nil
}

// Leader is the leader's address, empty when unknown.
func (r *Replica) Leader() string {
	rf, err := r.started()
	if err != nil {
		return ""
	}
	addr, _ := rf.LeaderWithID()
	return string(addr)
}

// loopWatch finds a follower that takes one snapshot after another.
type loopWatch struct {
	since time.Time
	count uint64
}

func (l *loopWatch) look(r *Replica) {
	if time.Since(l.since) > loopWindow {
		l.since, l.count = time.Now(), r.fsm.restored.Load()
	}
	if n := r.fsm.restored.Load() - l.count; n >= loopAlarm {
		r.log.Error("this follower takes one snapshot after another; "+rejoinHint, "snapshots", n)
		l.since, l.count = time.Now(), r.fsm.restored.Load()
	}
}
