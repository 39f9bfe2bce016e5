package client

import (
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

// flight is one copy of a stripe on its way to its participants. Its units and
// what they lie in live until the last of them has answered; then the flight, its
// calls and their memory are used again. Whoever answers takes out what it needs
// before it counts itself as answered: from then on the flight may be another's.
type flight struct {
	w      *writer
	core   core
	kind   write.Kind
	s      *write.Stripe
	shards layout.Mask
	parts  [][]byte  // the stripe's payload
	hold   []*buffer // what it lies in
	sums   []uint32  // of a relocation: the checksums that its blocks must have

	units   *build.Units
	encoded []byte      // the header, for the first participant
	calls   []*unitCall // one for each participant, kept
	left    atomic.Int32
}

var flights = sync.Pool{New: func() any { return &flight{} }}

// unitCall is one participant's append.
type unitCall struct {
	transport.Call
	f      *flight
	shard  layout.ShardIndex
	server layout.ServerID
	meta   []byte
}

func newUnitCall(f *flight) *unitCall {
	c := &unitCall{f: f}
	c.Done = func(*transport.Call) { c.answered() }
	return c
}

// newFlight makes the flight of a stripe's copy; its parts are the caller's to add.
func (w *writer) newFlight(c core, kind write.Kind, s *write.Stripe, shards layout.Mask) *flight {
	f := flights.Get().(*flight)
	f.w, f.core, f.kind, f.s, f.shards = w, c, kind, s, shards
	return f
}

// bytes is the length of the payload.
func (f *flight) bytes() int { return int(layout.BlockCount(f.s.Header.Blocks).Bytes()) }

// send encodes the stripe and sends each participant its unit.
func (f *flight) send() {
	h := f.s.Header
	if f.kind == write.Retry { // the core may read the checksums by now
		again := *h
		again.CRCs = nil
		h = &again
	}
	units, err := f.w.v.cell.shards.builder.Build(h, f.parts)
	must(err)
	f.units = units
	f.carried(h)
	h.Shard, _ = f.shards.Nth(0)
	f.encoded = h.AppendTo(f.encoded[:0])
	n := f.shards.Count()
	for len(f.calls) < n {
		f.calls = append(f.calls, newUnitCall(f))
	}
	f.left.Store(int32(n))
	calls, shards := f.calls[:n], f.shards // the flight may be gone once the last is sent
	for _, c := range calls {
		shard, _ := shards.Nth(0)
		shards = shards.Without(shard)
		c.send(shard)
	}
}

// carried compares a relocation's checksums with those that its blocks had where
// they came from: bytes that changed in memory in between are not blessed anew.
func (f *flight) carried(h *stripe.Header) {
	for i, want := range f.sums {
		shard, block := h.Shape.Locate(layout.BlockCount(i))
		if got := h.UnitCRCs(shard)[block]; got != want {
			must(errs.New(errs.Corrupt, "relocate", "block %d of stripe %d changed in memory: checksum %08x, it was %08x", i, h.Seq, got, want))
		}
	}
}

// send sends one participant its header and unit.
func (c *unitCall) send(shard layout.ShardIndex) {
	f := c.f
	w, at := f.w, &f.s.Segment.Shards[shard]
	ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: f.s.Segment.ID, Shard: shard}, Generation: at.Generation}
	body := frame.AppendBody{Shard: ref, Header: f.encoded}
	c.meta = body.AppendTo(c.meta[:0])
	stripe.Readdress(c.meta[len(c.meta)-len(f.encoded):], shard)
	c.shard, c.server, c.Reply = shard, at.Server, frame.Reply{}
	c.Meta, c.Payload, c.Request = c.meta, f.units.Of(shard), w.request(frame.Append)
	if f.s.Durable {
		c.Request.Flags |= frame.Durable
	}
	w.debts.add(at.Server, 1)
	w.v.cell.shards.submit(w.life, target{at.Server, ref.Segment}, &c.Call)
}

// answered reports one participant's answer.
func (c *unitCall) answered() {
	f := c.f
	w, to, err := f.w, f.core, c.Err
	reply := write.Reply{Seq: f.s.Seq(), Copy: f.s.Copy, Shard: c.shard, Incarnation: c.Reply.Incarnation}
	w.debts.add(c.server, -1)
	if f.left.Add(-1) == 0 {
		f.free()
	}
	w.input(func(now time.Duration) { to.Appended(now, reply, err) })
}

// free gives everything back after the last answer.
func (f *flight) free() {
	f.units.Release()
	for i, b := range f.hold {
		b.release()
		f.hold[i] = nil
	}
	clear(f.parts)
	f.w, f.core, f.s, f.units, f.parts, f.hold = nil, nil, nil, nil, f.parts[:0], f.hold[:0]
	f.sums = f.sums[:0]
	for _, c := range f.calls {
		c.Payload = nil
	}
	flights.Put(f)
}

// syncCall is one Sync under way, with its memory, which is used again.
type syncCall struct {
	transport.Call
	w      *writer
	core   core
	server layout.ServerID
	id     write.SyncID
	meta   []byte
}

// syncCalls keeps them; newSyncCall makes one.
var syncCalls sync.Pool

func newSyncCall() *syncCall {
	if c, _ := syncCalls.Get().(*syncCall); c != nil {
		return c
	}
	c := &syncCall{}
	c.Done = func(*transport.Call) { c.answered() }
	return c
}

// sendSync asks one device to make shards durable. The core uses s again once it
// is answered, so nothing of it is kept.
func (w *writer) sendSync(to core, s *write.Sync) {
	c := newSyncCall()
	body := frame.SyncBody{Incarnation: s.Incarnation, Device: s.Device, Shards: s.Shards}
	c.meta = body.AppendTo(c.meta[:0])
	c.w, c.core, c.server, c.id = w, to, s.Server, s.ID
	c.Meta, c.Request = c.meta, w.request(frame.Sync)
	w.debts.add(s.Server, 1)
	w.v.cell.shards.submit(w.life, target{s.Server, s.Shards[0].Segment}, &c.Call)
}

func (c *syncCall) answered() {
	w, to, id, err := c.w, c.core, c.id, c.Err
	w.debts.add(c.server, -1)
	c.w, c.core = nil, nil
	syncCalls.Put(c)
	w.input(func(now time.Duration) { to.Synced(now, id, err) })
}
