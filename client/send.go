package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"strake/client/internal/transport"
	"strake/client/internal/write"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// appendTimeout bounds a durable append of a recovery.
const appendTimeout = 10 * time.Second

// perform does one job outside the volume's mutex.
func (w *writer) perform(j job) {
	switch j.kind {
	case write.Cut, write.Move, write.Retry:
		w.send(j)
	case write.SendSync:
		w.sendSync(j)
	case write.Allocate:
		go w.allocate(j)
	case write.SealSegment:
		go w.seal(j)
	case write.RequestMove:
		go w.requestMove(j)
	}
}

func (w *writer) lease() lease { return lease{w.v.cell, w.v.id, w.epoch} }

func (w *writer) allocate(j job) {
	segments, err := w.lease().allocate(w.life, j.allocation)
	w.input(func(now time.Duration) { j.core.Granted(now, j.allocation.Request, segments, err) })
}

func (w *writer) seal(j job) {
	err := w.lease().seal(w.life, *j.seal)
	w.input(func(now time.Duration) { j.core.Sealed(now, j.seal.Segment, err) })
}

func (w *writer) requestMove(j job) {
	granted, retry := w.lease().requestMove(w.life, j.server)
	w.input(func(now time.Duration) { j.core.MoveGranted(now, j.server, granted, retry) })
}

// flight is one stripe on its way to its participants: the units live until the
// last of them has answered.
type flight struct {
	w     *writer
	core  core
	s     *write.Stripe
	units *build.Units
	left  atomic.Int32
}

// send encodes a stripe and sends each participant its unit.
func (w *writer) send(j job) {
	h := *j.stripe.Header
	h.CRCs = nil // of its own: another copy's may be read meanwhile
	units, err := w.v.cell.shards.builder.Build(&h, j.parts)
	must(err)
	if j.kind != write.Retry {
		w.v.mu.Lock()
		j.stripe.Header.CRCs = h.CRCs
		w.v.mu.Unlock()
	}
	h.Shard, _ = j.shards.Nth(0)
	encoded := h.AppendTo(make([]byte, 0, h.EncodedLen()))
	f := &flight{w: w, core: j.core, s: j.stripe, units: units}
	f.left.Store(int32(j.shards.Count()))
	for m := j.shards; m != 0; m &= m - 1 {
		shard, _ := m.Nth(0)
		f.sendUnit(shard, encoded)
	}
}

// sendUnit sends one participant its header and unit.
func (f *flight) sendUnit(shard layout.ShardIndex, encoded []byte) {
	w, at := f.w, f.s.Segment.Shards[shard]
	ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: f.s.Segment.ID, Shard: shard}, Generation: at.Generation}
	body := frame.AppendBody{Shard: ref, Header: encoded}
	meta := body.AppendTo(make([]byte, 0, len(encoded)+16))
	stripe.Readdress(meta[len(meta)-len(encoded):], shard)
	call := &transport.Call{Meta: meta, Payload: f.units.Of(shard)}
	call.Request = w.request(frame.Append)
	if f.s.Durable {
		call.Request.Flags |= frame.Durable
	}
	call.Done = func(c *transport.Call) { f.answered(shard, c.Reply.Incarnation, c.Err) }
	w.v.cell.shards.submit(w.life, at.Server, call)
}

// answered reports one participant's answer, and gives the units back after the
// last one.
func (f *flight) answered(shard layout.ShardIndex, incarnation layout.Incarnation, err error) {
	if f.left.Add(-1) == 0 {
		f.units.Release()
	}
	reply := write.Reply{Seq: f.s.Seq(), Copy: f.s.Copy, Shard: shard, Incarnation: incarnation}
	f.w.input(func(now time.Duration) { f.core.Appended(now, reply, err) })
}

// sendSync asks one device to make shards durable.
func (w *writer) sendSync(j job) {
	s := j.sync
	body := frame.SyncBody{Incarnation: s.Incarnation, Device: s.Device, Shards: s.Shards}
	call := &transport.Call{Request: w.request(frame.Sync), Meta: body.AppendTo(nil)}
	call.Done = func(c *transport.Call) {
		w.input(func(now time.Duration) { j.core.Synced(now, s.ID, c.Err) })
	}
	w.v.cell.shards.submit(w.life, s.Server, call)
}

// request is the header that every frame of the writer carries.
func (w *writer) request(kind frame.Kind) frame.Request {
	return frame.Request{Kind: kind, Class: w.v.class, Epoch: w.epoch,
		Acked: layout.Seq(w.acked.Load()), Flushed: layout.Seq(w.flushed.Load())}
}

// appendDurably sends one stripe to all its participants and waits until each
// has it durably. failed names the servers that did not take it. For recovery.
func (l lease) appendDurably(ctx context.Context, to *segment, h *stripe.Header, payload [][]byte) (failed []layout.ServerID, err error) {
	units, err := l.cell.shards.builder.Build(h, payload)
	if err != nil {
		return nil, err
	}
	defer units.Release()
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	var mu sync.Mutex
	var wait sync.WaitGroup
	for m := h.Participants(); m != 0; m &= m - 1 {
		h.Shard, _ = m.Nth(0)
		server := to.shards[h.Shard].server
		body := frame.AppendBody{Shard: to.ref(h.Shard), Header: h.AppendTo(nil)}
		call := &transport.Call{Request: frame.Request{Kind: frame.Append, Flags: frame.Durable, Class: layout.ClassBackground, Epoch: l.epoch},
			Meta: body.AppendTo(nil), Payload: units.Of(h.Shard)}
		wait.Go(func() {
			if e := l.cell.shards.do(ctx, server, call); e != nil {
				mu.Lock()
				defer mu.Unlock()
				failed, err = append(failed, server), errs.Wrap(e, "server %d", server)
			}
		})
	}
	wait.Wait()
	return failed, err
}
