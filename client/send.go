package client

import (
	"time"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// perform does one job outside the volume's mutex.
func (w *writer) perform(j *job) {
	switch j.kind {
	case write.Cut, write.Move, write.Retry:
		j.flight.send()
	case write.SendSync:
		w.sendSync(j.core, j.sync)
	case write.Allocate:
		w.allocate(j.core, j.allocation)
	case write.SealSegment:
		w.seal(j.core, j.seal)
	case write.RequestMove:
		w.requestMove(j.core, j.server)
	}
}

func (w *writer) allocate(c core, a *write.Allocation) {
	w.calls.start(func() {
		segments, err := w.lease.allocate(w.life, a)
		w.v.mu.Lock()
		w.refused = err
		w.v.mu.Unlock()
		w.input(func(now time.Duration) { c.Granted(now, a.Request, segments, err) })
	})
}

func (w *writer) seal(c core, s *stripe.Seal) {
	w.calls.start(func() {
		err := w.lease.seal(w.life, *s)
		w.input(func(now time.Duration) { c.Sealed(now, s.Segment, err) })
	})
}

// requestMove asks the cell's budget for a move. The budget is there so that an
// overload does not make it worse; a server that does not even answer a ping is
// gone, and is left without it. So it is asked each time, and the budget not before
// it has something.
func (w *writer) requestMove(c core, server layout.ServerID) {
	w.calls.start(func() {
		granted, retry := w.budgetedMove(server)
		granted = granted || w.v.cell.shards.silent(w.life, server)
		w.input(func(now time.Duration) { c.MoveGranted(now, server, granted, retry) })
		if granted {
			w.keepOff(server)
		}
	})
}

func (w *writer) budgetedMove(server layout.ServerID) (granted bool, retry time.Duration) {
	if wait := time.Duration(w.noMoves.Load()) - w.now(); wait > 0 {
		return false, wait
	}
	if granted, retry = w.lease.requestMove(w.life, server); !granted {
		w.noMoves.Store(int64(w.now() + retry))
	}
	return granted, retry
}

// request is the header that every frame of the writer carries.
func (w *writer) request(kind frame.Kind) frame.Request {
	return frame.Request{Kind: kind, Class: w.v.class, Tenant: w.v.tenant, Epoch: w.lease.epoch,
		Acked: layout.Seq(w.acked.Load()), Flushed: layout.Seq(w.flushed.Load())}
}
