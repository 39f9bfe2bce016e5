package mclock

import (
	"errors"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

func TestQueuesAreBoundedAndRefusalsTyped(t *testing.T) {
	c := New(Options{FlowDepth: 3, Depth: 5, Flows: 3})
	enqueue := func(tenant layout.TenantID) error {
		return c.Enqueue(0, &Request{Tenant: tenant, Class: one, Bytes: 4096})
	}
	for i, want := range []errs.Kind{errs.OK, errs.OK, errs.OK, errs.Overloaded} {
		if got := errs.KindOf(enqueue(1)); got != want {
			t.Errorf("request %d of one flow: %v, want %v", i, got, want)
		}
	}
	for i, want := range []errs.Kind{errs.OK, errs.OK, errs.Overloaded} {
		if got := errs.KindOf(enqueue(2)); got != want {
			t.Errorf("request %d of another: %v, want %v", i, got, want)
		}
	}
	if err := c.Enqueue(0, &Request{Bytes: -1}); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("negative bytes: %v", err)
	}
	if err := c.Enqueue(0, &Request{Bytes: MaxBytesOfRequest + 1}); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("absurd bytes: %v", err)
	}
	if errors.Is(enqueue(3), errs.OK) || !errors.Is(enqueue(4), errs.Overloaded) {
		t.Errorf("a fourth flow was taken")
	}
	if s := c.Stats(); s.Refused != 1 || s.Flows[0].Refused != 1 || s.Waiting != 5 {
		t.Errorf("%d refused for flows, %d by the first, %d wait", s.Refused, s.Flows[0].Refused, s.Waiting)
	}
}

// TestIdleFlowsMakeRoom: with more tenants than are kept apart at once, those that
// are idle are forgotten, but not what they still owe to a limit.
func TestIdleFlowsMakeRoom(t *testing.T) {
	c := New(Options{Flows: 2})
	c.SetClass(0, two, Params{Limit: Rate{Ops: 1}})
	serve := func(now time.Duration, k Key) error {
		r := &Request{Tenant: k.Tenant, Class: k.Class}
		if err := c.Enqueue(now, r); err != nil {
			return err
		}
		if got, _ := c.Next(now); got != r {
			t.Fatalf("%v was not served", k)
		}
		c.Done(now, r, ms)
		return c.Check()
	}
	for i, step := range []struct {
		now  time.Duration
		key  Key
		want errs.Kind
	}{{0, Key{1, one}, errs.OK}, {0, Key{1, two}, errs.OK}, {50 * ms, Key{2, one}, errs.Overloaded}, {500 * ms, Key{2, one}, errs.OK},
		{999 * ms, Key{3, one}, errs.OK}, {999 * ms, Key{4, one}, errs.Overloaded}, {1500 * ms, Key{4, one}, errs.OK}} {
		if err := serve(step.now, step.key); errs.KindOf(err) != step.want {
			t.Errorf("step %d: %v, want %v", i, err, step.want)
		}
	}
}

// TestDeadlinesThatCantBeMetAreRefusedEarly: at the door when the device is known
// to be slower or the limit lets nothing through before; else when the turn comes.
func TestDeadlinesThatCantBeMetAreRefusedEarly(t *testing.T) {
	c := New(Options{MaxWidth: 1})
	c.SetClass(0, two, Params{Limit: Rate{Ops: 10}})
	now := time.Second
	run := func(r *Request) {
		t.Helper()
		if err := c.Enqueue(now, r); err != nil {
			t.Fatal(err)
		}
		if got, _ := c.Next(now); got != r || r.Late {
			t.Fatalf("got %+v", got)
		}
	}
	first := &Request{Class: one, Bytes: 4096}
	run(first)
	c.Done(now, first, 10*ms)
	if err := c.Enqueue(now, &Request{Class: one, Bytes: 4096, Deadline: now + 9*ms}); !errors.Is(err, errs.Deadline) {
		t.Errorf("9 ms on a device that takes 10: %v", err)
	}
	waits := &Request{Class: one, Bytes: 4096, Deadline: now + 15*ms}
	run(first)
	if err := c.Enqueue(now, waits); err != nil {
		t.Fatal(err)
	}
	now += 12 * ms
	c.Done(now, first, 12*ms)
	if got, _ := c.Next(now); got != waits || !waits.Late {
		t.Errorf("3 ms were left: got %+v", got)
	}
	limited := []*Request{{Class: two}, {Class: two}}
	run(limited[0])
	if err := c.Enqueue(now, limited[1]); err != nil {
		t.Fatal(err)
	}
	if err := c.Enqueue(now, &Request{Class: two, Deadline: now + 150*ms}); !errors.Is(err, errs.Deadline) {
		t.Errorf("150 ms where the limit wants 200: %v", err)
	}
	if err := c.Enqueue(now, &Request{Class: two, Deadline: now + 250*ms}); err != nil {
		t.Errorf("250 ms where the limit wants 200: %v", err)
	}
}

// TestAQueueThatIsTooLongForADeadlineIsSaidAtOnce: what stands before a request counts,
// as the device was measured; the same request is taken once that is done.
func TestAQueueThatIsTooLongForADeadlineIsSaidAtOnce(t *testing.T) {
	c := New(Options{MaxWidth: 1})
	c.costs = newCosts(Cost{ReadOp: 10e6, ReadByte: minByteCost, WriteOp: 10e6, WriteByte: minByteCost})
	now := time.Second
	queue := make([]Request, 50)
	for i := range queue {
		queue[i] = Request{Class: one, Bytes: 4096}
		if err := c.Enqueue(now, &queue[i]); err != nil {
			t.Fatal(err)
		}
	}
	hasty := &Request{Class: one, Bytes: 4096, Deadline: now + 490*ms}
	if err := c.Enqueue(now, hasty); !errors.Is(err, errs.Deadline) {
		t.Errorf("490 ms behind 500: %v", err)
	}
	if err := c.Enqueue(now, &Request{Class: two, Bytes: 4096, Deadline: now + 490*ms}); err != nil {
		t.Errorf("490 ms in a class where nothing waits: %v", err)
	}
	for i := range queue[:2] {
		if !c.Cancel(now, &queue[i]) {
			t.Fatal("not queued any more")
		}
	}
	if err := c.Enqueue(now, hasty); err != nil {
		t.Errorf("490 ms behind 480: %v", err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestABadMomentRefusesNothingForEver: the estimate ages with each refusal.
func TestABadMomentRefusesNothingForEver(t *testing.T) {
	c := New(Options{})
	r := &Request{Class: one, Bytes: 4096}
	c.Enqueue(0, r)
	c.Next(0)
	c.Done(0, r, 10*time.Second)
	refused := 0
	for ; c.Enqueue(0, &Request{Class: one, Bytes: 4096, Deadline: 100 * ms}) != nil; refused++ {
		if refused > 100 {
			t.Fatal("refused a hundred times")
		}
	}
	if refused == 0 || c.Stats().Flows[0].Late != uint64(refused) {
		t.Errorf("refused %d times, counted %d", refused, c.Stats().Flows[0].Late)
	}
}

func TestTheGateBoundsPayloadOfEachFlow(t *testing.T) {
	c := New(Options{GateBytes: 10, FlowDepth: 2})
	k, other := Key{1, one}, Key{2, one}
	admit := func(k Key, n int) (*Request, bool, error) {
		r := &Request{Tenant: k.Tenant, Class: k.Class, Write: true, Bytes: n}
		ok, err := c.Admit(0, r)
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		return r, ok, err
	}
	for i, want := range []bool{true, true, false} {
		if _, ok, err := admit(k, 5); ok != want || err != nil {
			t.Errorf("write %d: %v %v, want %v", i, ok, err, want)
		}
	}
	if _, ok, _ := admit(other, 20); !ok {
		t.Error("a large one alone of another tenant must wait")
	}
	small, ok, _ := admit(k, 1)
	if ok {
		t.Error("one overtook at the gate")
	}
	if _, _, err := admit(k, 1); !errors.Is(err, errs.Overloaded) {
		t.Errorf("a third waits at the gate: %v", err)
	}
	if c.Admitted(20, k) != nil {
		t.Error("admitted though nothing was released")
	}
	c.Release(k, 5)
	if r := c.Admitted(20, k); r == nil || r.Bytes != 5 || c.Admitted(20, k) != nil {
		t.Errorf("after a release: %+v", r)
	}
	if !c.Cancel(0, small) || c.Cancel(0, small) {
		t.Error("a request at the gate can be canceled once")
	}
	if s := c.Stats().Flows[0]; s.Gated != 2 || s.GateTime != 20 || s.HeldBytes != 10 || s.AtGate != 0 {
		t.Errorf("%+v", s)
	}
	if _, _, err := admit(Key{3, one}, MaxBytesOfRequest+1); !errors.Is(err, errs.InvalidArgument) {
		t.Errorf("absurd payload: %v", err)
	}
	late := &Request{Class: one, Deadline: 1}
	if _, err := c.Admit(2, late); !errors.Is(err, errs.Deadline) {
		t.Errorf("after its deadline: %v", err)
	}
}

func TestHistogramsHoldWhatTheySay(t *testing.T) {
	for i := range Buckets - 1 {
		end := BucketEnd(i)
		if BucketOf(end-1) != i || BucketOf(end) != i+1 {
			t.Errorf("bucket %d ends at %v, which are in %d and %d", i, end, BucketOf(end-1), BucketOf(end))
		}
	}
	var h Histogram
	for i := range 100 {
		h.add(time.Duration(i) * ms)
	}
	if q := h.Quantile(0.5); q < 50*ms || q > 75*ms || h.Count() != 100 || h.Sum != 4950*ms {
		t.Errorf("median %v of %d, sum %v", q, h.Count(), h.Sum)
	}
}

// TestVirtualTimeCanBeShifted: tags never overflow and order is kept.
func TestVirtualTimeCanBeShifted(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 64}
	b := &load{Key: flowOf(two, 1), bytes: 4096, depth: 64}
	d := newDisk(t, Options{}, a, b).perOp(4000)
	d.run(time.Second)
	for _, f := range d.core.order {
		f.p += rebaseAt - 1000
		if f.queue.n > 0 {
			d.core.heaps[byWeight].set(f, f.p)
		}
	}
	d.core.virtual += rebaseAt - 1000
	d.warmed(0, time.Second)
	within(t, "the first", float64(a.ops), 2000, 0.03)
	if d.core.virtual > rebaseAt/2 {
		t.Error("not shifted")
	}
}

// FuzzCore drives the core with any calls and checks its invariants after each.
func FuzzCore(f *testing.F) {
	f.Add([]byte("0000000&7200200200&000&0000000%70200")) // an urgent flow that ran ahead of the weights
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07 requests come and go, parameters change"))
	f.Fuzz(func(t *testing.T, script []byte) {
		c := New(Options{FlowDepth: 4, Depth: 8, Flows: 3, MaxWidth: 3, GateBytes: 1 << 20})
		now := time.Duration(0)
		var open, running []*Request
		for len(script) >= 3 {
			op, a, b := script[0], script[1], script[2]
			script = script[3:]
			k := Key{layout.TenantID(a % 3), one + layout.Class(a>>2%2)}
			switch op % 8 {
			case 0, 1:
				r := &Request{Tenant: k.Tenant, Class: k.Class, Write: b&1 > 0, Bytes: int(b) << 12, Part: b&2 > 0}
				if b > 200 {
					r.Deadline = now + time.Duration(b)*100*time.Microsecond
				}
				if c.Enqueue(now, r) == nil {
					open = append(open, r)
				}
			case 2, 3:
				if r, _ := c.Next(now); r != nil && !r.Late {
					running = append(running, r)
				}
			case 4:
				if len(running) > 0 {
					c.Done(now, running[0], time.Duration(b)*time.Millisecond)
					running = running[1:]
				}
			case 5:
				p := Params{Weight: int(b), Limit: Rate{Ops: int64(a) * 10}, Target: time.Duration(b) * time.Millisecond}
				if b&1 > 0 {
					p.Reservation = Rate{Bytes: int64(b) << 12, Ops: int64(a)}
				}
				if b&2 > 0 {
					c.SetFlow(now, k, p)
				} else {
					c.SetClass(now, k.Class, p)
				}
			case 6:
				if len(open) > 0 {
					c.Cancel(now, open[int(a)%len(open)])
				}
				now += time.Duration(b) * time.Millisecond
			case 7:
				if b&1 > 0 {
					c.Release(k, int(b)<<12)
				} else if _, err := c.Admit(now, &Request{Tenant: k.Tenant, Class: k.Class, Bytes: int(b) << 12}); err != nil && errs.KindOf(err) != errs.Overloaded {
					t.Fatal(err)
				}
				for c.Admitted(now, k) != nil {
				}
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// BenchmarkRequest is the whole life of a request in a core: as the only one, and
// beside many flows with reservations, limits and a backlog.
func BenchmarkRequest(b *testing.B) {
	for name, flows := range map[string]int{"uncontended": 0, "contended/8": 8, "contended/1000": 1000} {
		b.Run(name, func(b *testing.B) {
			c := New(Options{})
			c.SetClass(0, two, Params{Reservation: Rate{Ops: 1000}, Limit: Rate{Ops: 1e6}})
			now := time.Duration(0)
			for i := range flows {
				for range 4 {
					c.Enqueue(now, &Request{Tenant: layout.TenantID(i), Class: one + layout.Class(i%2), Bytes: 16 << 10})
				}
			}
			if flows == 0 {
				c.Enqueue(now, &Request{Bytes: 4096})
			}
			b.ReportAllocs()
			for b.Loop() {
				r, _ := c.Next(now)
				if r == nil {
					b.Fatal("nothing to run")
				}
				now += 5 * time.Microsecond
				c.Done(now, r, 20*time.Microsecond)
				if err := c.Enqueue(now, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestRequestsAllocateNothing(t *testing.T) {
	c, r, now := New(Options{}), &Request{Bytes: 4096}, time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += ms
		c.Enqueue(now, r)
		c.Next(now)
		c.Done(now, r, ms)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
