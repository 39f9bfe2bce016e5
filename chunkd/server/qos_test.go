package server

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// TestPayloadWaitsInTheSocketWhenTooMuchIsQueued: the device hangs in an append
// and the gate is full, so the next writer's payload stays unread; its other
// connection, of another class, goes on.
func TestPayloadWaitsInTheSocketWhenTooMuchIsQueued(t *testing.T) {
	c := start(t, Limits{})
	c.devices.all[0].Sched = sched.NewQoS(mclock.Options{GateBytes: 3 << 20})
	c.store.holdAppend, c.store.entered = make(chan struct{}), make(chan struct{}, 16)
	shard(t, c.store, ref(9, 0), 16<<20)
	var writers []*peer
	for i := range 6 {
		p := c.connect(t)
		meta, payload := unit(ref(9, 0), layout.Seq(i+1), layout.ShardOffset(i)<<20, 1<<20)
		go p.nc.Write(p.encode(frame.Request{Kind: frame.Append, Epoch: 1, Class: layout.ClassCheckpoint, Tenant: 4}, meta, payload))
		writers = append(writers, p)
	}
	flow := func() mclock.FlowStats { return flowOf(c.Stats()[0].Stats, layout.ClassCheckpoint) }
	waitFor(t, func() bool { return flow().AtGate == 3 && flow().Running == 3 })
	if f := flow(); f.HeldBytes != 3<<20 || f.Tenant != 4 || f.Gated != 3 {
		t.Errorf("%d bytes held of tenant %d, %d had to wait", f.HeldBytes, f.Tenant, f.Gated)
	}
	other := c.connect(t)
	other.refused(errs.OK, frame.Request{Kind: frame.Read, Class: layout.ClassInference}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	writers[5].nc.Close() // leaves from the gate, or in the middle of its payload
	close(c.store.holdAppend)
	for _, p := range writers[:5] {
		if rep, _, _ := p.receive(); rep.Status != errs.OK {
			t.Errorf("%v", rep.Status)
		}
	}
	waitFor(t, func() bool { f := flow(); return f.HeldBytes == 0 && f.AtGate == 0 && f.Running == 0 })
	waitFor(t, func() bool { return c.memory.try(c.limits.Memory) })
	c.memory.release(c.limits.Memory)
}

// TestALimitedClassHoldsUpNobodyOnItsConnection: reads of a class at its limit
// wait aside.
func TestALimitedClassHoldsUpNobodyOnItsConnection(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	if err := c.SetClass(16, mclock.Params{Limit: mclock.Rate{Ops: 5}}); err != nil {
		t.Fatal(err)
	}
	p := c.connect(t)
	for id := range uint64(3) {
		p.send(frame.Request{Kind: frame.Read, ID: 100 + id, Class: 16}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	}
	p.send(frame.Request{Kind: frame.Read, ID: 200, Class: layout.ClassInference}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	var order []uint64
	for range 4 {
		rep, _, _ := p.receive()
		order = append(order, rep.ID)
	}
	if at := slices.Index(order, 200); order[0] != 100 || at != 1 {
		t.Errorf("replies came in the order %v, want the other class's second", order)
	}
	if err := c.SetClass(16, mclock.Params{Weight: -3}); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("a negative weight: %v", err)
	}
}

// TestWhatCantBeInTimeIsRefusedBeforeItRuns: the device takes 50 ms for a read.
func TestWhatCantBeInTimeIsRefusedBeforeItRuns(t *testing.T) {
	fsys := newShapedStore(t, "latency=50ms")
	c := start(t, Limits{}, fsys)
	shard(t, fsys, ref(9, 0), 4<<20)
	p := c.connect(t)
	read := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
	p.refused(errs.OK, frame.Request{Kind: frame.Read}, read, nil)
	p.refused(errs.Deadline, frame.Request{Kind: frame.Read, Deadline: 20 * time.Millisecond}, read, nil)
	if f := c.Stats()[0].Flows[0]; f.Late != 1 || f.Reads != 1 {
		t.Errorf("%d late, %d served", f.Late, f.Reads)
	}
}

// TestLargeTransfersTakeATurnForEachQuantum, and are one operation.
func TestLargeTransfersTakeATurnForEachQuantum(t *testing.T) {
	s := openStore(t, vfs.NewMem(vfs.MemOptions{}))
	c := start(t, Limits{}, s)
	shard(t, s, ref(9, 0), 4<<20)
	p := c.connect(t)
	meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
	p.refused(errs.OK, frame.Request{Kind: frame.Append, Epoch: 1, Class: 16}, meta, payload)
	_, _, got := p.call(frame.Request{Kind: frame.Read, Class: 17}, readMeta(ref(9, 0), frame.ReadRange{Length: 1 << 20}), nil)
	if !bytes.Equal(got, payload) {
		t.Error("other bytes")
	}
	st := c.Stats()[0]
	for _, f := range st.Flows {
		switch want := 1 << 20 / sched.Quantum; {
		case f.Class == 17 && (f.Reads != 1 || f.ReadBytes != 1<<20 || f.Queue.Count() != uint64(want)):
			t.Errorf("%d reads of %d bytes in %d turns", f.Reads, f.ReadBytes, f.Queue.Count())
		case f.Class == 16 && (f.Writes != 1 || f.WroteBytes != 1<<20 || f.HeldBytes != 0 || f.Queue.Count() != uint64(want)):
			t.Errorf("%d writes of %d bytes in %d turns, %d held", f.Writes, f.WroteBytes, f.Queue.Count(), f.HeldBytes)
		}
	}
}

func TestBackgroundWorkTakesTurns(t *testing.T) {
	c := start(t, Limits{})
	ran := false
	if err := c.Background(t.Context(), testDevice, false, c.BackgroundQuantum(testDevice, false), func() { ran = true }); err != nil || !ran {
		t.Errorf("%v, ran %v", err, ran)
	}
	if f := c.Stats()[0].Flows[0]; f.Class != layout.ClassBackground || f.Reads != 1 {
		t.Errorf("counted as %v", f.Key)
	}
	if err := c.Background(t.Context(), 99, false, 1, nil); !errors.Is(err, errs.NotHere) {
		t.Errorf("on another server's device: %v", err)
	}
}

func TestQoSCanBeSwitchedOff(t *testing.T) {
	s := New(Config{FIFO: true, Devices: []Device{{ID: testDevice, Store: newFakeStore()}}})
	if _, ok := s.devices.all[0].Sched.(*sched.FIFO); !ok {
		t.Errorf("the scheduler is a %T", s.devices.all[0].Sched)
	}
	if err := s.SetClass(16, mclock.Params{}); err != nil || s.Stats()[0].Width == 0 {
		t.Errorf("%v, %+v", err, s.Stats())
	}
	s.ResetFlow(testDevice, mclock.Key{})
	if err := s.SetFlow(99, mclock.Key{}, mclock.Params{}); !errors.Is(err, errs.NotHere) {
		t.Errorf("on another server's device: %v", err)
	}
	if err := s.SetFlow(testDevice, mclock.Key{}, mclock.Params{}); err != nil {
		t.Error(err)
	}
}

// BenchmarkInference is for people: 4 KiB reads one after another beside bulk, on
// an emulated device of 60 MiB/s, 4000 operations a second, 100 µs, in real time.
func BenchmarkInference(b *testing.B) {
	for _, aggressor := range []struct {
		name  string
		start func(*bench)
	}{{"alone", func(*bench) {}}, {"reads", (*bench).trainingReads}, {"writes", (*bench).checkpointWrites}} {
		for _, fifo := range []bool{false, true} {
			name := aggressor.name + "/qos=on"
			var s sched.Scheduler = sched.NewQoS(mclock.Options{})
			if fifo {
				name, s = aggressor.name+"/qos=off", sched.NewFIFO(0, 0)
			}
			b.Run(name, func(b *testing.B) { benchInference(b, s, aggressor.start) })
		}
	}
}

func benchInference(b *testing.B, s sched.Scheduler, aggressor func(*bench)) {
	be := newBench(b, newShapedStore(b, "read=60MiB,write=60MiB,iops=4000,latency=100us"), s)
	defer be.close()
	aggressor(be)
	time.Sleep(time.Second)
	be.mu.Lock()
	be.bytes = 0
	be.mu.Unlock()
	from := time.Now()
	be.every = 5 * time.Millisecond
	be.victim()
	reads := func() (n int) { be.mu.Lock(); defer be.mu.Unlock(); return len(be.delays) }
	b.ResetTimer()
	for n := b.N; reads() < n; {
		time.Sleep(5 * time.Millisecond)
	}
	be.mu.Lock()
	defer be.mu.Unlock()
	slices.Sort(be.delays)
	n := len(be.delays)
	b.ReportMetric(float64(be.delays[n/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(be.delays[n*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(be.bytes)/(1<<20)/time.Since(from).Seconds(), "bulk-MiB/s")
}

// TestListsAndProbesAreNoUseOfTheirClass: opening a volume lists headers in the
// class for inference, and a suspect server is probed in it; neither makes anybody
// write in short pieces.
func TestListsAndProbesAreNoUseOfTheirClass(t *testing.T) {
	c := start(t, Limits{})
	c.devices.all[0].Sched = sched.NewQoS(mclock.Options{})
	shard(t, c.store, ref(9, 0), 4<<20)
	p := c.connect(t)
	bulk := c.Stats()[0].Target
	ask := func(r frame.Request, meta []byte) time.Duration {
		r.Class = layout.ClassInference
		if rep, _, _ := p.call(r, meta, nil); rep.Status != errs.OK {
			t.Fatalf("%v: %v", r.Kind, rep.Status)
		}
		return c.Stats()[0].Target
	}
	block := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
	list := frame.ListBody{Shard: ref(9, 0), Most: 1 << 20}
	if got := ask(frame.Request{Kind: frame.List}, list.AppendTo(nil)); got != bulk {
		t.Errorf("target %v after a list, before %v", got, bulk)
	}
	if got := ask(frame.Request{Kind: frame.Read, Flags: frame.NoCRCs}, block); got != bulk {
		t.Errorf("target %v after a probe, before %v", got, bulk)
	}
	if got := ask(frame.Request{Kind: frame.Read}, block); got >= bulk {
		t.Errorf("target %v after a read, before %v", got, bulk)
	}
}

// TestAnUnknownClassIsTraining: a number that no class has, or none has any more, gets
// nobody past a limit.
func TestAnUnknownClassIsTraining(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	c.SetClasses([]layout.Class{layout.ClassInference, layout.ClassTraining, 16})
	p := c.connect(t)
	for _, class := range []layout.Class{0, 16, 17, 200} {
		p.refused(errs.OK, frame.Request{Kind: frame.Read, Class: class}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	}
	if n := len(c.Stats()[0].Flows); n != 2 {
		t.Errorf("%d classes had work", n)
	}
	if training, added := flowOf(c.Stats()[0].Stats, layout.ClassTraining), flowOf(c.Stats()[0].Stats, 16); training.Reads != 3 || added.Reads != 1 {
		t.Errorf("%d reads of training and %d of the class that was added, want 3 and 1", training.Reads, added.Reads)
	}
}

// TestRequestsOfNoTenantAreNoneOfTheStores: the store's own flow, which has a weight
// of its own and belongs to no tenant, must not be joined by background work.
func TestRequestsOfNoTenantAreNoneOfTheStores(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	p := c.connect(t)
	for _, tenant := range []layout.TenantID{0, 7} {
		p.refused(errs.OK, frame.Request{Kind: frame.Read, Class: layout.ClassBackground, Tenant: tenant}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	}
	want := map[layout.TenantID]bool{layout.DefaultTenantID: true, 7: true}
	for _, f := range c.Stats()[0].Flows {
		if f.Key == sched.OwnKey || !want[f.Tenant] {
			t.Errorf("a flow %+v", f.Key)
		}
		delete(want, f.Tenant)
	}
	if len(want) > 0 {
		t.Errorf("no flow of tenants %v", want)
	}
}
