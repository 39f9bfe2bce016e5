package server

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// barrierTimeout bounds how long writers are waited for. Past it the snapshot is
// refused, and the error names who did not answer.
const barrierTimeout = 5 * time.Second

// barrierAgain is after how long a writer is asked again: it may have been opening
// the volume when it was asked first.
const barrierAgain = 500 * time.Millisecond

// barriers are the leader's questions to writers that are under way: a writer
// flushes and answers up to which seq. They are soft: with a new leader the
// caller begins anew.
type barriers struct {
	mu   sync.Mutex
	last uint64             // guarded by mu
	open map[uint64]barrier // guarded by mu
}

// barrier is one question about one volume.
type barrier struct {
	volume layout.VolumeID
	answer chan answered // one slot
}

// answered says that all up to seq of an epoch is flushed.
type answered struct {
	epoch layout.Epoch
	seq   layout.Seq
}

func (b *barriers) begin(volume layout.VolumeID) (id uint64, answer <-chan answered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[uint64]barrier{}
	}
	for b.last == 0 { // an answer to another leader's question must not be taken for one to ours
		b.last = rand.Uint64()
	}
	b.last++
	one := barrier{volume: volume, answer: make(chan answered, 1)}
	b.open[b.last] = one
	return b.last, one.answer
}

func (b *barriers) end(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, id)
}

// answer takes a writer's answer; one that nobody waits for any more is dropped.
func (b *barriers) answer(id uint64, volume layout.VolumeID, a answered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one, ok := b.open[id]; ok && one.volume == volume {
		select {
		case one.answer <- a:
		default:
		}
	}
}

// AnswerBarrier implements pb.MetaServer. Whether the epoch still stands the
// state judges when the snapshot is made.
func (s *Server) AnswerBarrier(_ context.Context, r *pb.AnswerBarrierRequest) (*pb.AnswerBarrierReply, error) {
	volume := layout.VolumeID(r.GetVolume())
	v, err := s.machine.View().Resolve(state.VolumeRef{ID: volume})
	if err != nil {
		return nil, err
	}
	if err := holds(&v, sessionID(r.GetSession()), layout.Epoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	s.barriers.answer(r.GetBarrier(), volume, answered{layout.Epoch(r.GetEpoch()), layout.Seq(r.GetSeq())})
	return &pb.AnswerBarrierReply{}, nil
}

// askWriters fills in what the writers of the items' volumes answer, where there
// are writers. With root they are asked to write a map root first, if they can soon.
func (s *Server) askWriters(ctx context.Context, op string, items []state.SnapshotItem, root bool) error {
	view := s.machine.View()
	asked := map[layout.VolumeID]*question{}
	for _, item := range items {
		v, err := view.Resolve(item.Volume)
		if err != nil {
			return err
		}
		if v.Holder == 0 || asked[v.ID] != nil {
			continue
		}
		q := &question{volume: v, root: root}
		q.id, q.answer = s.barriers.begin(v.ID)
		defer s.barriers.end(q.id)
		q.ask(s.sessions)
		asked[v.ID] = q
	}
	for i := range items {
		v, err := view.Resolve(items[i].Volume)
		if err != nil {
			return err
		}
		q := asked[v.ID]
		if q == nil {
			continue
		}
		got, err := q.wait(ctx, op, view, s.sessions)
		if err != nil {
			return err
		}
		items[i].Epoch, items[i].Seq = got.epoch, got.seq
	}
	return nil
}

// question is a barrier that is waited for.
type question struct {
	volume state.Volume
	root   bool
	id     uint64
	answer <-chan answered
	got    *answered
}

func (q *question) wait(ctx context.Context, op string, view *state.View, s *sessions) (answered, error) {
	if q.got != nil {
		return *q.got, nil
	}
	again, asked := time.NewTicker(barrierAgain), time.Now()
	defer again.Stop()
	for {
		select {
		case a := <-q.answer:
			q.got = &a
			return a, nil
		case <-again.C:
			q.ask(s)
			continue
		case <-ctx.Done():
		}
		holder, _ := view.Session(q.volume.Holder)
		return answered{}, errs.New(errs.LeaseHeld, op, "%s (session %d) writes volume %s and did not flush within %v",
			holder.Owner, q.volume.Holder, layout.VolumeName{Tenant: q.volume.Tenant, Volume: q.volume.Name}, time.Since(asked).Round(100*time.Millisecond)).
			WithHint("look at that client, or take the volume over: open it with --force")
	}
}

// ask tells the writer of the barrier.
func (q *question) ask(s *sessions) {
	s.tell(q.volume.Holder, &pb.SessionEvent{Kind: pb.SessionEvent_BARRIER, Volume: uint64(q.volume.ID), Barrier: q.id, Root: q.root})
}
