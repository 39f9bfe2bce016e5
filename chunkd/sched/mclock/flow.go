package mclock

import (
	"time"

	"strake/internal/layout"
)

// Key names a flow.
type Key struct {
	Tenant layout.TenantID
	Class  layout.Class
}

const (
	// slack is how far tags may lag behind the clock for a flow that was busy a
	// moment ago. It makes up for late timers and for the gap between a reply and
	// the next request; a limit is exceeded by no more than this, once.
	slack = 10 * time.Millisecond
	// catchUp is for how long a reservation that couldn't be met is made good.
	catchUp = 100 * time.Millisecond
	// forgiven: a flow idle for so long comes back without debts by weight.
	forgiven = 100 * time.Millisecond
	// weightScale is the precision of P tags.
	weightScale = 256
)

// flow is the state of one tenant's work in one class.
type flow struct {
	key   Key
	pos   [heaps]int // 1 + index in the heap; 0: not in it
	queue list
	gate  list

	params      Params
	queuedBytes int64         // of queue
	queuedCost  time.Duration // of queue, as it was known when each came
	held        int64         // bytes admitted through the gate and not released

	reserve, limit tag
	p              int64 // virtual start tag
	running        int
	idleSince      time.Duration // while running and queue are both 0
	throttledFrom  time.Duration // since when it waits for its limit; -1: it does not

	stat flowStat
}

// tag is a start tag in each unit.
type tag struct{ bytes, ops time.Duration }

func (t tag) at() time.Duration { return max(t.bytes, t.ops) }

// raise lifts a tag that lags behind floor.
func (t *tag) raise(floor time.Duration) {
	t.bytes, t.ops = max(t.bytes, floor), max(t.ops, floor)
}

// advance moves a tag on by n bytes and ops operations at a rate.
func (t *tag) advance(r Rate, n, ops int64) {
	if r.Bytes > 0 {
		t.bytes += perSecond(n, r.Bytes)
	}
	if r.Ops > 0 {
		t.ops += perSecond(ops, r.Ops)
	}
}

// rescaled is a tag after a change of its rate: as many units ahead of a time as before,
// at the new rate, and never behind.
func (t tag) rescaled(from time.Duration, old, now Rate) tag {
	unit := func(at time.Duration, old, now int64) time.Duration {
		if at <= from || old == 0 || now == 0 {
			return from
		}
		return from + min(longest, time.Duration(float64(at-from)*float64(old)/float64(now)))
	}
	return tag{unit(t.bytes, old.Bytes, now.Bytes), unit(t.ops, old.Ops, now.Ops)}
}

// longest bounds how far a tag lies ahead after a change.
const longest = time.Hour

// perSecond is how long n units take at a rate, rounded up.
func perSecond(n, rate int64) time.Duration {
	return time.Duration((n*int64(time.Second) + rate - 1) / rate)
}

func (r *Request) ops() int64 {
	if r.Part {
		return 0
	}
	return 1
}

// idle tells whether the flow has nothing queued and nothing running.
func (f *flow) idle() bool { return f.queue.n == 0 && f.running == 0 }

// forgettable tells whether dropping the flow loses nothing but its statistics.
func (f *flow) forgettable(now, behind time.Duration) bool {
	return f.idle() && f.gate.n == 0 && f.held == 0 && now-f.idleSince > forgiven &&
		f.reserve.at() <= now-behind && f.limit.at() <= now
}

// activate prepares the tags of a flow whose queue was empty. Time that it was
// idle gives no credit, see slack.
func (f *flow) activate(now, behind time.Duration, virtual int64) {
	floor := now
	if f.running > 0 || now-f.idleSince <= slack {
		floor = now - slack
	}
	f.reserve.raise(floor - behind)
	f.limit.raise(floor)
	if f.running == 0 && now-f.idleSince > forgiven {
		f.p = virtual
	}
	f.p = max(f.p, virtual)
}

// charge moves the tags past a request that is dispatched.
func (f *flow) charge(now time.Duration, r *Request, reserved bool, cost int64) {
	if reserved {
		f.reserve.advance(f.params.Reservation, int64(r.Bytes), r.ops())
	}
	f.limit.raise(now - slack)
	f.limit.advance(f.params.Limit, int64(r.Bytes), r.ops())
	f.p += cost * weightScale / int64(f.params.Weight)
}

// earliest is when a request that is last in the queue runs at best: when the device
// has done what stands before it, and nothing of other flows, and the limit lets it go.
func (f *flow) earliest(now time.Duration) time.Duration {
	free := now + f.queuedCost
	if f.params.Limit.IsZero() {
		return free
	}
	at := f.limit
	at.advance(f.params.Limit, f.queuedBytes, int64(f.queue.n))
	return max(free, at.at())
}
