package sim

import (
	"context"
	"math"
	"strconv"
	"time"

	"strake/chunkd/janitor"
	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// A chunk server's background work: rebuilds, which are janitor.Work on a fiber;
// scrubs; and the search for leftovers.

// rebuildShard asks a server to make a shard again.
type rebuildShard struct{ request *pb.RebuildShard }

const (
	sourceCall  = 3 * time.Second
	sweepEvery  = 4 * time.Second
	scrubEvery  = 6 * time.Second
	scrubShards = 4 // of one look
)

// rebuild makes a shard again, and answers when it is done.
func (c *chunkServer) rebuild(r *pb.RebuildShard, done func(*pb.RebuiltShard, error)) {
	key := layout.ShardKey{Segment: layout.SegmentID(r.Target.Shard.Segment), Shard: layout.ShardIndex(r.Target.Shard.Shard)}
	if layout.DeviceID(r.Target.Shard.Device) != c.device {
		done(nil, errs.New(errs.NotHere, "", "device %d is not on this server", r.Target.Shard.Device))
		return
	}
	if c.busy[key] {
		done(nil, errs.New(errs.Busy, "", "another task works on shard %v", key))
		return
	}
	c.busy[key] = true
	c.fibers.Go(func(f *simclient.Fiber) {
		w := janitor.Work{Device: &janitor.Device{ID: c.device, Store: cutStore{c.store, c, f}, Sched: inTurn{}}, Coders: &c.s.bench.coders,
			Remote: remote{c, f}, Pace: func(context.Context, int64) error { return nil }, Together: oneByOne}
		out := w.Rebuild(context.Background(), r)
		if f.Alive() {
			delete(c.busy, key)
			c.s.note("rebuilt", uint64(c.number), uint64(key.Segment)<<8|uint64(key.Shard), uint64(r.Target.Shard.Generation), uint64(out.Result.Kind))
			done(out, nil)
		}
	})
}

func oneByOne(list []func()) {
	for _, f := range list {
		f()
	}
}

// remote reads other servers' shards for a fiber. An address is a server's number.
type remote struct {
	c *chunkServer
	f *simclient.Fiber
}

func (r remote) call(addr string, request any) (reply *simclient.ChunkReply, err error) {
	number, err := strconv.Atoi(addr)
	if err != nil {
		return nil, err
	}
	over := false
	ok := r.f.Wait(func(done func()) {
		r.c.s.call(&r.c.process, r.c.s.chunks[number], request, func(got *simclient.ChunkReply, e error) {
			if !over {
				over, reply, err = true, got, e
				done()
			}
		})
		r.c.after(sourceCall, func() {
			if !over {
				over, err = true, errs.New(errs.Unavailable, "", "server %s does not answer", addr)
				done()
			}
		})
	})
	if !ok {
		return nil, errs.New(errs.Canceled, "", "the server is no more")
	}
	return reply, err
}

// Read implements janitor.Remote.
func (r remote) Read(_ context.Context, addr string, ref frame.ShardRef, ranges []frame.ReadRange, buf []byte) error {
	reply, err := r.call(addr, &simclient.Read{Ref: ref, Ranges: ranges, Bare: true})
	if err == nil && copy(buf, reply.Bytes) != len(buf) {
		err = errs.New(errs.Unavailable, "", "a payload of %d bytes, want %d", len(reply.Bytes), len(buf))
	}
	return err
}

// List implements janitor.Remote.
func (r remote) List(_ context.Context, addr string, ref frame.ShardRef, from layout.Seq) ([]byte, layout.Seq, error) {
	reply, err := r.call(addr, &simclient.List{Ref: ref, From: from, Most: 1 << 20})
	if err != nil {
		return nil, 0, err
	}
	return reply.Bytes, reply.Next, nil
}

// cutStore is a store whose calls may find the power cut, for a fiber.
type cutStore struct {
	*store.Store
	c *chunkServer
	f *simclient.Fiber
}

func (s cutStore) under(call func() error) error {
	if !s.f.Alive() {
		return errs.New(errs.Canceled, "", "the server is no more")
	}
	err := s.c.underCut(true, call)
	if s.c.cut != nil && s.c.cut.left != nil {
		s.c.s.rare("a power cut in the middle of a rebuild")
		s.c.fall(s.c.cut.left)
		return errs.New(errs.Canceled, "", "the power was cut")
	}
	return err
}

func (s cutStore) Create(spec store.ShardSpec) error {
	return s.under(func() error { return s.Store.Create(spec) })
}

func (s cutStore) Delete(ref frame.ShardRef) error {
	err := s.under(func() error { return s.Store.Delete(ref) })
	s.c.s.note("superseded", uint64(s.c.number), uint64(ref.Segment)<<8|uint64(ref.Shard), uint64(ref.Generation), uint64(errs.KindOf(err)))
	s.c.s.rare("an older generation made way for a rebuild")
	s.c.s.mayMakeWay(s.c, ref)
	return err
}

func (s cutStore) Fill(ref frame.ShardRef, units []store.Unit, turns store.Turns) error {
	return s.under(func() error { return s.Store.Fill(ref, units, turns) })
}

func (s cutStore) Mend(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error {
	return s.under(func() error { return s.Store.Mend(ref, last, seal) })
}

// inTurn is a scheduler under which all work runs at once.
type inTurn struct{ sched.Scheduler }

func (inTurn) Do(_ context.Context, _ sched.Tag, fn func()) error { fn(); return nil }
func (inTurn) Quantum(bool) int                                   { return sched.Quantum }

// sweep asks of each shard whether it is needed, now and then.
func (c *chunkServer) sweep() {
	c.after(sweepEvery, func() {
		if c.serving {
			c.sweepNow()
		}
		c.sweep()
	})
}

func (c *chunkServer) sweepNow() {
	var refs []*pb.ShardRef
	c.store.Each(func(st store.Stat) bool {
		if !c.busy[st.Ref.ShardKey] {
			refs = append(refs, &pb.ShardRef{Segment: uint64(st.Ref.Segment), Shard: uint32(st.Ref.Shard), Generation: uint32(st.Ref.Generation), Device: uint64(c.device)})
		}
		return true
	})
	free := func() {
		for _, r := range refs {
			delete(c.busy, keyOf(r))
		}
	}
	for _, r := range refs {
		c.busy[keyOf(r)] = true
	}
	q := &pb.CheckShardsRequest{Server: uint64(c.id), Shards: refs, Device: uint64(c.device), Through: math.MaxUint64}
	c.askFor(&checkShards{q}, func(r any, err error) {
		free()
		if err != nil {
			return
		}
		for _, g := range r.(*checked).gone {
			c.removeLeftover(g.ref, g.abandoned)
		}
		c.missed(r.(*checked).missing)
	}, free)
}

// missed reports what the state places here and the store does not have.
func (c *chunkServer) missed(list []*pb.ShardRef) {
	reports := janitor.Lacking(c.store, list)
	for _, r := range reports {
		c.s.note("missed", uint64(c.number), r.Shard.Segment<<8|uint64(r.Shard.Shard), uint64(r.Shard.Generation))
		c.s.rare("a placed shard missed by its server")
		if !c.s.hurt[c.device] {
			c.s.fail("P3: server %d, whose medium is sound, does not have shard %v, which is placed there: %s", c.id, r.Shard, r.Detail)
		}
	}
	if len(reports) > 0 {
		c.ask(&reportShards{reports}, func(any, error) {})
	}
}

func keyOf(r *pb.ShardRef) layout.ShardKey {
	return layout.ShardKey{Segment: layout.SegmentID(r.Segment), Shard: layout.ShardIndex(r.Shard)}
}

func (c *chunkServer) removeLeftover(ref *pb.ShardRef, abandoned bool) {
	at := frame.ShardRef{ShardKey: keyOf(ref), Generation: layout.Generation(ref.Generation)}
	c.s.mayGo(c, at)
	remove := c.store.Delete
	if abandoned {
		remove = c.store.Discard
	}
	err := remove(at)
	c.s.note("leftover", uint64(c.number), ref.Segment<<8|uint64(ref.Shard), uint64(ref.Generation), uint64(errs.KindOf(err)))
	c.s.rare("a leftover removed")
}

// askFor asks the leader; the answer may be lost, and then lost runs.
func (c *chunkServer) askFor(request any, answered func(any, error), lost func()) {
	over := false
	c.ask(request, func(r any, err error) {
		if !over {
			over = true
			answered(r, err)
		}
	})
	c.after(2*time.Second, func() {
		if !over {
			over = true
			lost()
		}
	})
}

// scrub reads some finalized shards now and then, and reports what is wrong.
func (c *chunkServer) scrub(at int) {
	c.after(scrubEvery, func() {
		list := c.finalized()
		for n := 0; n < scrubShards && c.serving && len(list) > 0; n++ {
			at = (at + 1) % len(list)
			c.scrubOne(list[at])
		}
		c.scrub(at)
	})
}

// finalized lists the shards that can be scrubbed, in order.
func (c *chunkServer) finalized() (list []frame.ShardRef) {
	c.store.Each(func(st store.Stat) bool {
		if st.State == store.StateFinalized && !c.busy[st.Ref.ShardKey] {
			list = append(list, st.Ref)
		}
		return true
	})
	sortRefs(list)
	return list
}

// scrubOne verifies a shard and gives the number of bad ones.
func (c *chunkServer) scrubOne(ref frame.ShardRef) int {
	_, _, err := janitor.Verify(c.store, ref, func(at layout.ShardOffset, buf []byte) error {
		_, err := c.store.Read(ref, []frame.ReadRange{{Offset: at, Length: uint32(len(buf))}}, buf)
		return err
	})
	if kind := errs.KindOf(err); err == nil || kind == errs.NotHere || kind == errs.StaleGeneration {
		return 0
	}
	c.s.note("scrub finds", uint64(c.number), uint64(ref.Segment)<<8|uint64(ref.Shard))
	c.s.rare("a scrub found a bad shard")
	if !c.s.hurt[c.device] {
		c.s.fail("P3: server %d, whose medium is sound, has a bad shard %v: %v", c.id, ref.ShardKey, err)
	}
	c.ask(&reportShards{[]*pb.ShardReport{badShard(ref, c.device, errs.Corrupt)}}, func(any, error) {})
	return 1
}
