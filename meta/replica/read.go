package replica

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// confirmTries bounds how often one round asks raft for a heartbeat.
const confirmTries = 16

// Read returns when whatever was acknowledged anywhere before the call is in
// this server's state; the caller then reads the state. It writes nothing.
//
// It holds for two reasons. A leader that passed its barrier has applied all
// that earlier leaders acknowledged, and what it acknowledges itself it has
// applied before. And no other leader can have acknowledged anything before the
// call, because afterwards a majority answered requests of this leader's term
// that were sent after the call. raft's own VerifyLeader counts an answer to a
// request that was sent before the call, which a process that was stopped for a
// second finds in its socket when it goes on; it serves here only to have
// heartbeats sent at once.
//
// Calls that arrive while a round is under way share the next one.
func (r *Replica) Read(ctx context.Context) error {
	if _, err := r.leading(); err != nil {
		return err
	}
	return r.reads.join(ctx, r.spawn, r.confirmRound)
}

func (r *Replica) confirmRound() error {
	term, err := r.leading()
	if err != nil {
		return err
	}
	round := r.peers.begin()
	for range confirmTries {
		if err := r.await(func() raft.Future { return r.raft.VerifyLeader() }); err != nil {
			return r.typed(err, "confirm the leader")
		}
		members := r.raft.GetConfiguration().Configuration()
		if r.peers.confirm(r.id, members, round, term) {
			_, err := r.leading()
			return err
		}
	}
	return errs.New(errs.Unavailable, "confirm the leader", "the other metadata servers answer late")
}

// rounds gathers callers into rounds that run one after another.
type rounds struct {
	mu      sync.Mutex
	next    *round // guarded by mu: gathers callers
	running bool   // guarded by mu: a goroutine works off rounds
}

type round struct {
	done chan struct{} // closed when err is set
	err  error
}

// join waits for a round that begins after the call.
func (q *rounds) join(ctx context.Context, spawn func(func()) bool, run func() error) error {
	q.mu.Lock()
	if q.next == nil {
		q.next = &round{done: make(chan struct{})}
	}
	mine := q.next
	if !q.running {
		q.running = spawn(func() { q.work(run) })
	}
	running := q.running
	q.mu.Unlock()
	if !running {
		return errs.New(errs.Unavailable, "confirm the leader", "this server is stopping")
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), "wait for the leader to be confirmed")
	}
}

// work runs rounds until nobody waits.
func (q *rounds) work(run func() error) {
	for {
		q.mu.Lock()
		mine := q.next
		q.next = nil
		q.running = mine != nil
		q.mu.Unlock()
		if mine == nil {
			return
		}
		mine.err = run()
		close(mine.done)
	}
}
