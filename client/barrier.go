package client

import (
	"context"
	"time"

	"strake/internal/planted"
	"strake/proto/pb"
)

// barrierTimeout bounds the flush for a barrier: who asked waits no longer.
const barrierTimeout = 5 * time.Second

// barrier flushes, and tells the metadata service up to which seq all is durable.
// No answer makes it name this client to who wants the snapshot.
func (w *writer) barrier(id uint64) {
	ctx, cancel := context.WithTimeout(w.life, barrierTimeout)
	defer cancel()
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
