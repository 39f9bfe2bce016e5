package mclock

import (
	"testing"
	"time"

	"strake/internal/layout"
)

// TestSmallReadsStayQuickBesideAnyAggressor: at most 2.5 times as slow as alone (2.2 as
// they are: up to two pieces are at the device, each takes as long as the read), and
// the aggressor keeps nine tenths of the device. An aggressor asks for pieces of
// the core's quantum, as the shell does.
func TestSmallReadsStayQuickBesideAnyAggressor(t *testing.T) {
	victim := func() *load {
		return &load{Key: flowOf(layout.ClassInference, 1), bytes: 4096, every: 7919 * time.Microsecond}
	}
	alone := victim()
	newDisk(t, Options{}, alone).run(10 * time.Second)
	for name, aggressor := range map[string]*load{
		"reads":                {Key: flowOf(layout.ClassTraining, 1), bytes: 256 << 10, pieces: true, depth: 64},
		"writes":               {Key: flowOf(layout.ClassCheckpoint, 2), bytes: 256 << 10, pieces: true, depth: 64, write: true},
		"small writes":         {Key: flowOf(layout.ClassCheckpoint, 2), bytes: 4096, depth: 64, write: true},
		"rebuild":              {Key: flowOf(layout.ClassBackground, 0), bytes: 256 << 10, pieces: true, depth: 8},
		"another of its class": {Key: flowOf(layout.ClassInference, 2), bytes: 4096, depth: 64},
	} {
		t.Run(name, func(t *testing.T) {
			l := victim()
			d := newDisk(t, Options{}, l, aggressor)
			d.warmed(3*time.Second, 20*time.Second)
			t.Logf("p99 %v, alone %v; aggressor %.1f MiB/s, %d ops/s in pieces of %d; width %d", l.quantile(.99), alone.quantile(.99),
				float64(aggressor.got)/20/mib, aggressor.ops/20, d.core.Quantum(aggressor.write), d.core.Stats().Width)
			if l.quantile(.99) > 5*alone.quantile(.99)/2 {
				t.Errorf("p99 %v, alone %v", l.quantile(.99), alone.quantile(.99))
			}
			if aggressor.busy < (20*time.Second-l.busy)*9/10 {
				t.Errorf("the aggressor had the device for %v of 20 s", aggressor.busy)
			}
		})
	}
}

// TestWidthFollowsTheDevice: one channel needs two requests, 32 channels need
// about 32, and a device that is quick enough is given all it takes.
func TestWidthFollowsTheDevice(t *testing.T) {
	for _, c := range []struct {
		name        string
		op, latency time.Duration
		channels    int
		least, most int
		throughput  float64 // of what the channels can
	}{
		{"one channel", 250 * time.Microsecond, 100 * time.Microsecond, 1, 1, 5, 0.95},
		{"a cloud disk", 2 * ms, 0, 32, 30, 64, 0.95},
		{"flash", 80 * time.Microsecond, 0, 16, 60, 64, 0.99},
		{"a slow disk", 8 * ms, 0, 1, 1, 3, 0.95},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.channels > 1 {
				t.Skip("a million requests")
			}
			l := &load{Key: flowOf(one, 1), bytes: 4096, depth: 256}
			d := newDisk(t, Options{}, l)
			d.op, d.rate, d.latency, d.channel = c.op, 1<<40, c.latency, make([]time.Duration, c.channels)
			d.warmed(2*time.Second, 3*time.Second)
			if w := d.core.Stats().Width; w < c.least || w > c.most {
				t.Errorf("width %d, want %d to %d", w, c.least, c.most)
			}
			if can := 3 / c.op.Seconds() * float64(c.channels); float64(l.ops) < c.throughput*can {
				t.Errorf("%d of %.0f operations", l.ops, can)
			}
		})
	}
}

// TestCostIsLearnt on devices far from the first guess.
func TestCostIsLearnt(t *testing.T) {
	for _, rate := range []int64{10 * mib, 100 * mib, 500 * mib} {
		if testing.Short() && rate > 100*mib {
			continue // many requests
		}
		a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 32}
		b := &load{Key: flowOf(two, 1), bytes: 256 << 10, depth: 32}
		c := &load{Key: flowOf(three, 1), bytes: 64 << 10, depth: 32, write: true}
		d := newDisk(t, Options{}, a, b, c)
		d.rate, d.op = rate, time.Duration(16<<10*int64(time.Second)/rate)
		d.run(60 * time.Second)
		for _, l := range []*load{a, b, c} {
			within(t, l.String(), d.core.costs.of(l.write, l.bytes).Seconds(), d.cost(l.bytes).Seconds(), 0.15)
		}
	}
}

// TestQuantumFollowsTheTarget: long pieces where nobody minds or the device is
// quick, short ones beside a class with a small target.
func TestQuantumFollowsTheTarget(t *testing.T) {
	bulk := &load{Key: flowOf(layout.ClassTraining, 1), bytes: 256 << 10, pieces: true, depth: 32}
	small := &load{Key: flowOf(layout.ClassInference, 1), bytes: 4096, every: 5 * ms, from: 5 * time.Second, until: 10 * time.Second}
	d := newDisk(t, Options{}, bulk, small)
	if d.core.Quantum(false) != MaxQuantum {
		t.Errorf("at first %d", d.core.Quantum(false))
	}
	d.run(5 * time.Second)
	before := d.core.Quantum(false)
	d.run(4 * time.Second)
	if during := d.core.Quantum(false); during != MinQuantum || before <= during {
		t.Errorf("%d before inference, %d beside it", before, during)
	}
	d.run(inUse + 5*time.Second)
	if after := d.core.Quantum(false); after != before {
		t.Errorf("%d after inference, %d before", after, before)
	}
}

// TestAStuckWriteHoldsUpNoSmallRead: one write that takes seconds fills a width of
// one; reads of a class with a target pass it, others wait.
func TestAStuckWriteHoldsUpNoSmallRead(t *testing.T) {
	c := New(Options{MaxWidth: 1})
	now := time.Second
	enqueue := func(class layout.Class) *Request {
		r := &Request{Class: class, Bytes: 4096, Write: class == layout.ClassCheckpoint}
		if err := c.Enqueue(now, r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	stuck := enqueue(layout.ClassCheckpoint)
	if r, _ := c.Next(now); r != stuck {
		t.Fatalf("first came %+v", r)
	}
	bulk, small := enqueue(layout.ClassTraining), enqueue(layout.ClassInference)
	r, wait := c.Next(now)
	if r != nil || wait != Defaults(layout.ClassInference).Target {
		t.Fatalf("second came %+v, wait %v", r, wait)
	}
	now += wait
	for range 3 { // one after another
		if r, _ = c.Next(now); r != small {
			t.Fatalf("beside the stuck one came %+v", r)
		}
		c.Done(now, small, ms)
		small = enqueue(layout.ClassInference)
	}
	for range 10 {
		enqueue(layout.ClassInference)
	}
	for n := 0; ; n++ {
		if r, _ = c.Next(now); r == nil && n == extraWidth {
			break
		} else if r == nil || r.Class != layout.ClassInference {
			t.Fatalf("%d beside the stuck one, then %+v", n, r)
		}
	}
	c.Done(now, stuck, time.Second)
	for r, _ = c.Next(now); r != bulk; r, _ = c.Next(now) {
		if r == nil {
			t.Fatal("the other never came")
		}
		c.Done(now, r, ms)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestQuantaGetShortBesideOneLoneReader: a scrub reads one long piece after the
// other, so that the device is never saturated and teaches nothing of cost; its
// pieces get short all the same once a class with a target is in use.
func TestQuantaGetShortBesideOneLoneReader(t *testing.T) {
	quick := &load{Key: flowOf(layout.ClassInference, 1), bytes: 4096, every: 4 * ms, from: time.Second}
	scrub := &load{Key: flowOf(layout.ClassBackground, 1), bytes: MaxQuantum, pieces: true, depth: 1}
	d := newDisk(t, Options{}, quick, scrub)
	d.run(time.Second)
	if n := d.core.Quantum(false); n != MaxQuantum {
		t.Fatalf("quanta of %d before anybody has a target", n)
	}
	d.run(500 * ms)
	d.reset()
	d.run(5 * time.Second)
	if n := d.core.Quantum(false); n != MinQuantum {
		t.Errorf("quanta of %d on a disk of 60 MiB/s", n)
	}
	if p := quick.quantile(0.99); p > 1200*time.Microsecond {
		t.Errorf("p99 %v beside the scrub", p)
	}
}

// TestServiceRequestsBringNoTargetIntoForce: a list of headers in the class for
// inference leaves the pieces of who writes beside long, on a device on which a
// read of that class makes them short.
func TestServiceRequestsBringNoTargetIntoForce(t *testing.T) {
	c, now := New(Options{}), time.Second
	c.costs = newCosts(Cost{WriteOp: float64(ms), WriteByte: 10})
	serve := func(r *Request) {
		if err := c.Enqueue(now, r); err != nil {
			t.Fatal(err)
		}
		if got, _ := c.Next(now); got != r {
			t.Fatalf("%+v is not served at once", r)
		}
		c.Done(now, r, ms)
	}
	serve(&Request{Class: layout.ClassInference, Bytes: 1 << 20, Service: true})
	if c.Quantum(true) != MaxQuantum {
		t.Errorf("pieces of %d after a list of headers", c.Quantum(true))
	}
	serve(&Request{Class: layout.ClassInference, Bytes: 4096})
	if c.Quantum(true) != MinQuantum {
		t.Errorf("pieces of %d after a read", c.Quantum(true))
	}
}
