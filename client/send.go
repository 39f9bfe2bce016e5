package client

import (
	"sync/atomic"
	"time"

	"strake/client/internal/transport"
	"strake/client/internal/write"
	"strake/internal/erasure/build"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// syncMeta is what a Sync's fields take beside its shards, in bytes.
const syncMeta = 32

// perform does one job outside the volume's mutex.
func (w *writer) perform(j job) {
	switch j.kind {
	case write.Cut, write.Move, write.Retry:
		w.send(j)
	case write.SendSync:
		w.sendSync(j)
	case write.Allocate:
		w.calls.start(func() { w.allocate(j) })
	case write.SealSegment:
		w.calls.start(func() { w.seal(j) })
	case write.RequestMove:
		w.calls.start(func() { w.requestMove(j) })
	}
}

func (w *writer) allocate(j job) {
	segments, err := w.lease.allocate(w.life, j.allocation)
	w.v.mu.Lock()
	w.refused = err
	w.v.mu.Unlock()
	w.input(func(now time.Duration) { j.core.Granted(now, j.allocation.Request, segments, err) })
}

func (w *writer) seal(j job) {
	err := w.lease.seal(w.life, *j.seal)
	w.input(func(now time.Duration) { j.core.Sealed(now, j.seal.Segment, err) })
}

func (w *writer) requestMove(j job) {
	granted, retry := w.lease.requestMove(w.life, j.server)
	w.input(func(now time.Duration) { j.core.MoveGranted(now, j.server, granted, retry) })
	if granted {
		w.keepOff(j.server)
	}
}

// flight is one stripe on its way to its participants: the units live until the
// last of them has answered.
type flight struct {
	w     *writer
	core  core
	s     *write.Stripe
	units *build.Units
	hold  []*buffer
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
	f := &flight{w: w, core: j.core, s: j.stripe, units: units, hold: j.hold}
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
	w.debts.add(at.Server, 1)
	call.Done = func(c *transport.Call) {
		w.debts.add(at.Server, -1)
		f.answered(shard, c.Reply.Incarnation, c.Err)
	}
	w.v.cell.shards.submit(w.life, target{at.Server, ref.Segment}, call)
}

// answered reports one participant's answer, and gives units and payload back
// after the last one.
func (f *flight) answered(shard layout.ShardIndex, incarnation layout.Incarnation, err error) {
	if f.left.Add(-1) == 0 {
		f.units.Release()
		for _, b := range f.hold {
			b.release()
		}
	}
	reply := write.Reply{Seq: f.s.Seq(), Copy: f.s.Copy, Shard: shard, Incarnation: incarnation}
	f.w.input(func(now time.Duration) { f.core.Appended(now, reply, err) })
}

// sendSync asks one device to make shards durable.
func (w *writer) sendSync(j job) {
	s := j.sync
	body := frame.SyncBody{Incarnation: s.Incarnation, Device: s.Device, Shards: s.Shards}
	call := &transport.Call{Request: w.request(frame.Sync), Meta: body.AppendTo(make([]byte, 0, syncMeta+16*len(s.Shards)))}
	server, id := s.Server, s.ID // the core uses s again once it is answered
	w.debts.add(server, 1)
	call.Done = func(c *transport.Call) {
		w.debts.add(server, -1)
		w.input(func(now time.Duration) { j.core.Synced(now, id, c.Err) })
	}
	w.v.cell.shards.submit(w.life, target{s.Server, s.Shards[0].Segment}, call)
}

// request is the header that every frame of the writer carries.
func (w *writer) request(kind frame.Kind) frame.Request {
	return frame.Request{Kind: kind, Class: w.v.class, Epoch: w.lease.epoch,
		Acked: layout.Seq(w.acked.Load()), Flushed: layout.Seq(w.flushed.Load())}
}
