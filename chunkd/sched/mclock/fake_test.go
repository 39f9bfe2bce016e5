package mclock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"strake/internal/layout"
)

const (
	ms  = time.Millisecond
	mib = 1 << 20
)

// disk is a device in virtual time with a core before it: a request takes it for
// max(op, bytes/rate) and is answered latency later, so that latencies overlap.
type disk struct {
	t       *testing.T
	core    *Core
	now     time.Duration
	op      time.Duration
	rate    int64 // bytes a second
	latency time.Duration
	channel []time.Duration // each is taken until then; one unless a test says otherwise
	loads   []*load
	done    []completion // by time
	wake    time.Duration
	turns   int
}

type completion struct {
	at, began time.Duration
	r         *Request
	l         *load
}

// load is one source of requests: closed (depth of them always) or open (one
// every so often).
type load struct {
	Key
	write       bool
	bytes       int
	pieces      bool // no larger than the core's quantum, as the shell cuts them
	depth       int
	every       time.Duration
	from, until time.Duration // until 0: always

	next     time.Duration
	begun    bool
	got, ops int64
	busy     time.Duration // that it took of the device
	refused  int
	delays   []time.Duration // from arrival to completion
}

func newDisk(t *testing.T, opts Options, loads ...*load) *disk {
	return &disk{t: t, core: New(opts), op: 250 * time.Microsecond, rate: 60 * mib, latency: 100 * time.Microsecond,
		channel: make([]time.Duration, 1), loads: loads}
}

// perOp makes a device that serves n requests a second, of any size.
func (d *disk) perOp(n int) *disk {
	d.op, d.rate, d.latency = time.Second/time.Duration(n), 1<<40, 0
	return d
}

func (d *disk) set(class layout.Class, p Params) {
	d.t.Helper()
	if err := d.core.SetClass(d.now, class, p); err != nil {
		d.t.Fatal(err)
	}
}

// run goes on for a time.
func (d *disk) run(how time.Duration) {
	d.t.Helper()
	for end := d.now + how; ; {
		d.arrive()
		d.dispatch()
		at := end
		for _, l := range d.loads {
			if l.every > 0 && l.live(l.next) {
				at = min(at, max(l.next, d.now))
			} else if l.depth > 0 && !l.begun {
				at = min(at, max(l.from, d.now))
			}
		}
		if len(d.done) > 0 {
			at = min(at, d.done[0].at)
		}
		if d.wake > d.now {
			at = min(at, d.wake)
		}
		d.now = at
		if at >= end {
			return
		}
		d.complete()
	}
}

func (l *load) live(now time.Duration) bool {
	return now >= l.from && (l.until == 0 || now < l.until)
}

func (d *disk) arrive() {
	for _, l := range d.loads {
		if l.depth > 0 && !l.begun && l.live(d.now) {
			l.begun = true
			for range l.depth {
				d.enqueue(l, &Request{})
			}
		}
		if l.every > 0 && l.next < l.from {
			l.next = l.from
		}
		for l.every > 0 && l.next <= d.now && l.live(l.next) {
			d.enqueue(l, &Request{})
			l.next += l.every
		}
	}
}

func (d *disk) enqueue(l *load, r *Request) {
	r.Tenant, r.Class, r.Write, r.Bytes, r.Owner = l.Tenant, l.Class, l.write, l.bytes, l
	if l.pieces {
		r.Bytes = min(r.Bytes, d.core.Quantum(l.write))
	}
	if err := d.core.Enqueue(d.now, r); err != nil {
		l.refused++
	}
}

func (d *disk) dispatch() {
	for {
		r, wait := d.core.Next(d.now)
		d.wake = d.now + wait
		if r == nil {
			break
		}
		least := slices.Index(d.channel, slices.Min(d.channel))
		start := max(d.now, d.channel[least])
		cost := d.cost(r.Bytes)
		r.Owner.(*load).busy += cost
		d.channel[least] = start + cost
		d.done = append(d.done, completion{d.channel[least] + d.latency, d.now, r, r.Owner.(*load)})
	}
	slices.SortStableFunc(d.done, func(a, b completion) int { return int(a.at - b.at) })
	if d.turns++; d.turns%64 == 0 { // often enough; each looks at everything
		if err := d.core.Check(); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *disk) cost(bytes int) time.Duration {
	return max(d.op, time.Duration(int64(bytes)*int64(time.Second)/d.rate))
}

func (d *disk) complete() {
	for len(d.done) > 0 && d.done[0].at <= d.now {
		c := d.done[0]
		d.done = d.done[1:]
		c.l.got += int64(c.r.Bytes)
		c.l.ops++
		c.l.delays = append(c.l.delays, d.now-c.r.arrived)
		d.core.Done(d.now, c.r, d.now-c.began)
		if c.l.depth > 0 && c.l.live(d.now) {
			d.enqueue(c.l, c.r)
		} else if c.l.depth > 0 {
			c.l.begun = c.l.until > 0
		}
	}
}

// reset forgets what was counted.
func (d *disk) reset() {
	for _, l := range d.loads {
		l.got, l.ops, l.busy, l.delays = 0, 0, 0, nil
	}
}

// warmed runs for a while and forgets it, then runs on.
func (d *disk) warmed(warm, how time.Duration) *disk {
	d.t.Helper()
	d.run(warm)
	d.reset()
	d.run(how)
	return d
}

func (l *load) quantile(q float64) time.Duration {
	if len(l.delays) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(l.delays))
	return s[int(q*float64(len(s)-1))]
}

// within fails unless got is within a part of want.
func within(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if got < want*(1-part) || got > want*(1+part) {
		t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, part*100)
	}
}

func flowOf(class layout.Class, tenant layout.TenantID) Key { return Key{tenant, class} }

func (l *load) String() string { return fmt.Sprintf("%v of tenant %d", l.Class, l.Tenant) }
