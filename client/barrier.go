package client

import (
	"context"
	"time"

	"strake/internal/planted"
	"strake/proto/pb"
)

const (
	// barrierTimeout bounds the flush for a barrier: who asked waits no longer.
	barrierTimeout = 5 * time.Second
	// barrierRoot bounds the wait for a map root before it.
	barrierRoot = 2 * time.Second
)

// barrier flushes, and tells the metadata service up to which seq all is durable.
// No answer makes it name this client to who wants the snapshot. With root a map root
// is written first, if many headers came since the last: else everybody who opens the
// tag replays them. One that takes long is not waited for.
func (w *writer) barrier(id uint64, root bool) {
	ctx, cancel := context.WithTimeout(w.life, barrierTimeout)
	defer cancel()
	if root {
		w.rootSoon(ctx)
	}
	var err error
	if !planted.Is(planted.BarrierUnflushed) {
		err = w.flush(newCompletion(), true).Wait(ctx)
	}
	if err == nil {
		w.v.mu.Lock()
		request := &pb.AnswerBarrierRequest{Session: uint64(w.lease.session), Volume: uint64(w.lease.volume),
			Barrier: id, Epoch: uint64(w.lease.epoch), Seq: uint64(w.core.FlushedSeq())}
		if planted.Is(planted.BarrierUnflushed) {
			request.Seq = uint64(w.core.Acked())
		}
		w.v.mu.Unlock()
		err = w.v.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
			_, err := m.AnswerBarrier(ctx, request)
			return err
		})
	}
	if err != nil && w.life.Err() == nil {
		w.v.cell.cfg.Logger.Warn("snapshot barrier not answered", "volume", w.v.id, "err", err)
	}
}

// rootSoon writes a map root, if it is worth while, and waits for it for barrierRoot.
// One that is being written counts.
func (w *writer) rootSoon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, barrierRoot)
	defer cancel()
	made := make(chan struct{})
	if !w.calls.start(func() {
		defer close(made)
		if err := w.mapper.checkpointAbove(w.life, w.v.cell.cfg.Tuning.CloseHeaders); err != nil && w.life.Err() == nil {
			w.v.cell.cfg.Logger.Warn("no map root before a tag", "volume", w.v.id, "err", err)
		}
	}) {
		return
	}
	select {
	case <-made:
	case <-ctx.Done():
	}
}
