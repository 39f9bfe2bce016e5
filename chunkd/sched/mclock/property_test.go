package mclock

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strake/internal/layout"
	"strake/internal/qos"
)

// Classes of an administrator: no defaults beside weight 100.
const (
	one layout.Class = 16 + iota
	two
	three
	four
)

// TestReservationsAreMetAt90Percent reserves nine tenths for three classes of
// different sizes, beside one of a hundred times their weight that wants all.
func TestReservationsAreMetAt90Percent(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 8}
	b := &load{Key: flowOf(two, 1), bytes: 4096, depth: 32, write: true}
	c := &load{Key: flowOf(three, 1), bytes: 4096, depth: 1}
	greedy := &load{Key: flowOf(four, 1), bytes: 4096, depth: 256}
	d := newDisk(t, Options{}, a, b, c, greedy).perOp(4000)
	d.set(one, Params{Reservation: Rate{Ops: 2000}, Weight: 1})
	d.set(two, Params{Reservation: Rate{Bytes: 1200 * 4096}, Weight: 1})
	d.set(three, Params{Reservation: Rate{Ops: 400}, Weight: 1})
	d.set(four, Params{Weight: 1000})
	d.warmed(time.Second, 10*time.Second)
	for l, want := range map[*load]float64{a: 20000, b: 12000, c: 4000} {
		within(t, l.String(), float64(l.ops), want, 0.05)
	}
	within(t, "all", float64(a.ops+b.ops+c.ops+greedy.ops), 40000, 0.02)
}

// TestReservationOfBytesOnASlowDisk is the same where sizes matter.
func TestReservationOfBytesOnASlowDisk(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 256 << 10, depth: 16}
	b := &load{Key: flowOf(two, 1), bytes: 16 << 10, depth: 16}
	greedy := &load{Key: flowOf(four, 1), bytes: 256 << 10, depth: 64, write: true}
	d := newDisk(t, Options{}, a, b, greedy)
	d.set(one, Params{Reservation: Rate{Bytes: 36 * mib}, Weight: 1})
	d.set(two, Params{Reservation: Rate{Bytes: 18 * mib}, Weight: 1})
	d.set(four, Params{Weight: 1000})
	d.warmed(2*time.Second, 20*time.Second)
	within(t, "36 MiB/s", float64(a.got), 36*20*mib, 0.05)
	within(t, "18 MiB/s", float64(b.got), 18*20*mib, 0.05)
}

func TestLimitsAreKept(t *testing.T) {
	for _, depth := range []int{1, 16} {
		bytes := &load{Key: flowOf(one, 1), bytes: 64 << 10, depth: depth}
		ops := &load{Key: flowOf(two, 1), bytes: 4096, depth: depth}
		both := &load{Key: flowOf(three, 1), bytes: 16 << 10, depth: depth} // its bytes are what counts
		d := newDisk(t, Options{}, bytes, ops, both)
		d.set(one, Params{Limit: Rate{Bytes: 10 * mib}})
		d.set(two, Params{Limit: Rate{Ops: 500}, Reservation: Rate{Ops: 100}})
		d.set(three, Params{Limit: Rate{Bytes: 4 * mib, Ops: 400}})
		d.warmed(time.Second, 5*time.Second)
		within(t, "10 MiB/s", float64(bytes.got), 5*10*mib, 0.03)
		within(t, "500 ops/s", float64(ops.ops), 5*500, 0.03)
		within(t, "4 MiB/s and 400 ops/s", float64(both.got), 5*4*mib, 0.03)
	}
}

// TestTenantsShareNoLimit: each tenant's flow has the class's figures for itself.
func TestTenantsShareNoLimit(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 4}
	b := &load{Key: flowOf(one, 2), bytes: 4096, depth: 4}
	twin := &load{Key: flowOf(one, 2), bytes: 4096, depth: 64} // another connection of b
	d := newDisk(t, Options{}, a, b, twin)
	d.set(one, Params{Limit: Rate{Ops: 300}})
	d.warmed(time.Second, 5*time.Second)
	within(t, "tenant 1", float64(a.ops), 1500, 0.03)
	within(t, "tenant 2 on two connections", float64(b.ops+twin.ops), 1500, 0.03)
}

// TestSharesFollowWeights: in device time, whatever the sizes and directions, on
// a device that serves one at a time and on one that serves several.
func TestSharesFollowWeights(t *testing.T) {
	for _, channels := range []int{1, 8} {
		a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 64}
		b := &load{Key: flowOf(two, 1), bytes: 256 << 10, depth: 32}
		c := &load{Key: flowOf(three, 1), bytes: 64 << 10, depth: 32, write: true}
		d := newDisk(t, Options{}, a, b, c)
		d.channel = make([]time.Duration, channels)
		d.set(one, Params{Weight: 100})
		d.set(two, Params{Weight: 200})
		d.set(three, Params{Weight: 300})
		d.warmed(15*time.Second, 10*time.Second)
		all := (a.busy + b.busy + c.busy).Seconds()
		within(t, "all", all, 10*float64(channels), 0.02)
		within(t, "weight 100", a.busy.Seconds(), all/6, 0.1)
		within(t, "weight 200", b.busy.Seconds(), all/3, 0.1)
		within(t, "weight 300", c.busy.Seconds(), all/2, 0.1)
		t.Logf("cost %+v, width %d", d.core.costs.line(), d.core.width.now)
	}
}

// TestNobodyStarves: weight 1 beside weight 10000, and a device of which more is
// reserved than it has.
func TestNobodyStarves(t *testing.T) {
	small := &load{Key: flowOf(one, 1), bytes: 4096, depth: 4}
	large := &load{Key: flowOf(two, 1), bytes: 4096, depth: 512}
	d := newDisk(t, Options{}, small, large).perOp(4000)
	d.set(one, Params{Weight: 1})
	d.set(two, Params{Weight: qos.MaxWeight})
	d.run(10 * time.Second)
	if small.ops < 3 {
		t.Errorf("weight 1 of %d got %d requests of 40000", qos.MaxWeight, small.ops)
	}
	d.set(one, Params{Weight: 100})
	d.set(two, Params{Reservation: Rate{Ops: 10000}})
	d.warmed(time.Second, 10*time.Second)
	within(t, "beside an impossible reservation", float64(small.ops), 2000, 0.1)
}

// TestReservationsShrinkInProportion when the device is slower than was reserved.
func TestReservationsShrinkInProportion(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 64}
	b := &load{Key: flowOf(two, 1), bytes: 4096, depth: 64}
	d := newDisk(t, Options{}, a, b).perOp(1000)
	d.set(one, Params{Reservation: Rate{Ops: 2000}})
	d.set(two, Params{Reservation: Rate{Ops: 1000}})
	d.warmed(time.Second, 10*time.Second)
	within(t, "all", float64(a.ops+b.ops), 10000, 0.02)
	within(t, "the smaller one", float64(b.ops), 10000./3, 0.2)
}

// TestIdleFlowsEarnNoCredit: who was idle for ten seconds is limited, reserved
// and weighed as if it had just begun, and takes nothing from who was not.
func TestIdleFlowsEarnNoCredit(t *testing.T) {
	steady := &load{Key: flowOf(one, 1), bytes: 4096, depth: 64}
	limited := &load{Key: flowOf(two, 1), bytes: 4096, depth: 64, from: 10 * time.Second}
	reserved := &load{Key: flowOf(three, 1), bytes: 4096, depth: 64, from: 10 * time.Second}
	weighed := &load{Key: flowOf(four, 1), bytes: 4096, depth: 64, from: 10 * time.Second}
	d := newDisk(t, Options{}, steady, limited, reserved, weighed).perOp(4000)
	d.set(two, Params{Limit: Rate{Ops: 400}, Weight: 1000})
	d.set(three, Params{Reservation: Rate{Ops: 400}, Weight: 1})
	d.warmed(10*time.Second, time.Second)
	within(t, "limit", float64(limited.ops), 400, 0.03)
	within(t, "reservation", float64(reserved.ops), 400, 0.05)
	within(t, "weight", float64(weighed.ops), 1600, 0.05)
	within(t, "steady", float64(steady.ops), 1600, 0.05)
}

// TestDebtsAreForgotten: who had the device alone pays nothing for it later.
func TestDebtsAreForgotten(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 64}
	b := &load{Key: flowOf(two, 1), bytes: 4096, depth: 64, from: 10 * time.Second}
	d := newDisk(t, Options{}, a, b).perOp(4000)
	d.warmed(10*time.Second, time.Second)
	within(t, "the first", float64(a.ops), 2000, 0.03)
	within(t, "the second", float64(b.ops), 2000, 0.03)
}

// TestParametersChangeWhileWorkIsQueued.
func TestParametersChangeWhileWorkIsQueued(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 4096, depth: 64}
	b := &load{Key: flowOf(one, 2), bytes: 4096, depth: 64}
	d := newDisk(t, Options{}, a, b).perOp(4000)
	d.warmed(time.Second, time.Second)
	within(t, "equal", float64(a.ops), 2000, 0.03)
	d.set(one, Params{Limit: Rate{Ops: 100}})
	d.warmed(100*ms, time.Second)
	within(t, "limited", float64(a.ops+b.ops), 200, 0.05)
	if err := d.core.SetFlow(d.now, b.Key, Params{Weight: 300}); err != nil {
		t.Fatal(err)
	}
	d.set(one, Params{})
	d.warmed(0, time.Second)
	within(t, "weight 300 beside 100", float64(b.ops), 3000, 0.03)
	d.core.ResetFlow(d.now, b.Key)
	d.warmed(0, time.Second)
	within(t, "equal again", float64(b.ops), 2000, 0.03)
}

// TestALimitThatMovesIsKept: parts of cell-wide limits change with demand.
func TestALimitThatMovesIsKept(t *testing.T) {
	a := &load{Key: flowOf(one, 1), bytes: 256 << 10, depth: 16}
	d := newDisk(t, Options{}, a)
	want := int64(0)
	for i := range 200 {
		limit := int64(1+i%2) * mib
		d.set(one, Params{Limit: Rate{Bytes: limit}, Reservation: Rate{Bytes: limit / 2}})
		d.run(100 * ms)
		want += limit / 10
	}
	within(t, "1 and 2 MiB/s by turns", float64(a.got), float64(want), 0.03)
	d.set(one, Params{})
	a.got = 0
	d.run(time.Second)
	if a.got < 50*mib {
		t.Errorf("%d bytes in a second without a limit", a.got)
	}
}

// TestWhateverTheMix, drawn at random: sizes, directions, weights, limits, and
// reservations of up to four fifths of the device's time. Each reservation is met, each
// limit kept, and nobody starves.
func TestWhateverTheMix(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomMix(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomMix(t *testing.T, rnd *rand.Rand) {
	const seconds = 10
	var loads []*load
	n := 2 + rnd.IntN(4)
	for i := range n {
		loads = append(loads, &load{Key: flowOf(layout.Class(20+i), 1), write: rnd.IntN(2) == 0, bytes: 4096 << (2 * rnd.IntN(4)), depth: 8 + rnd.IntN(56)})
	}
	d := newDisk(t, Options{}, loads...)
	left := 0.8
	params := make([]Params, n)
	for i, l := range loads {
		p := Params{Weight: 1 + rnd.IntN(1000)}
		if share := left * rnd.Float64(); rnd.IntN(2) == 0 && share > 0.05 {
			left -= share
			p.Reservation.Ops = int64(share * float64(time.Second) / float64(d.cost(l.bytes)))
		}
		if rnd.IntN(2) == 0 {
			p.Limit.Ops = max(20, 1+p.Reservation.Ops+rnd.Int64N(1000))
		}
		params[i] = p
		d.set(l.Class, p)
	}
	d.warmed(3*time.Second, seconds*time.Second)
	for i, l := range loads {
		p, rate := params[i], float64(l.ops)/seconds
		if rate < 0.95*float64(p.Reservation.Ops) {
			t.Errorf("%v, %d bytes, of %+v: %.0f a second, %d are reserved", l, l.bytes, params, rate, p.Reservation.Ops)
		}
		if p.Limit.Ops > 0 && rate > 1.03*float64(p.Limit.Ops) {
			t.Errorf("%v, %d bytes, of %+v: %.0f a second, the limit is %d", l, l.bytes, params, rate, p.Limit.Ops)
		}
		if l.ops == 0 {
			t.Errorf("%v, %d bytes, of %+v: it starves", l, l.bytes, params)
		}
	}
}
