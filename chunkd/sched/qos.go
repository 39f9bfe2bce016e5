package sched

import (
	"context"
	"sync"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
)

// QoS is the Scheduler that serves by reservation, weight and limit of tenants
// and classes. It is the shell of an mclock.Core.
type QoS struct {
	start time.Time // the core's time counts from here

	mu    sync.Mutex // guards all below; held for one call of the core
	core  *mclock.Core
	free  *pending      // those that can be used again
	timer *time.Timer   // nil until the first limit was hit
	armed time.Duration // when the timer fires; 0: it does not
}

// pending is one piece of work. Its fields are guarded by QoS.mu, but for what its
// owner uses while it runs.
type pending struct {
	req     mclock.Request
	ready   chan struct{} // capacity 1: your turn has come, or you are too late
	granted bool          // a value is or was in ready, or its owner knows
	gate    bool          // waits to be admitted, not for a turn
	timer   *time.Timer   // for deadlines; nil until the first wait with one
	next    *pending
}

var _ Scheduler = (*QoS)(nil)

// NewQoS makes a QoS; zero options stand for their defaults.
func NewQoS(opts mclock.Options) *QoS {
	return &QoS{start: time.Now(), core: mclock.New(opts)}
}

func (q *QoS) now() time.Duration { return time.Since(q.start) }

// Do implements Scheduler.
func (q *QoS) Do(ctx context.Context, tag Tag, fn func()) error {
	w, began, err := q.enter(ctx, tag)
	if err != nil {
		return err
	}
	defer q.leave(w, began)
	fn()
	return nil
}

// enter waits for a turn, if it does not come at once.
func (q *QoS) enter(ctx context.Context, tag Tag) (*pending, time.Duration, error) {
	q.mu.Lock()
	w, now := q.take(tag), q.now()
	if err := q.core.Enqueue(now, &w.req); err != nil {
		q.recycle(w)
		q.mu.Unlock()
		return nil, 0, err
	}
	q.turn(now, w)
	granted := w.granted
	q.mu.Unlock()
	if !granted {
		if err := q.wait(ctx, w, tag); err != nil {
			return nil, 0, err
		}
		now = q.now()
	}
	if w.req.Late {
		return nil, 0, q.drop(w, tooLate())
	}
	return w, now, nil
}

// leave ends a turn that began at a time and gives others theirs.
func (q *QoS) leave(w *pending, began time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.core.Done(now, &w.req, now-began)
	q.recycle(w)
	q.turn(now, nil)
}

// turn gives turns to all who may have one; self needs no message. mu is held.
func (q *QoS) turn(now time.Duration, self *pending) {
	for {
		r, wait := q.core.Next(now)
		if r == nil {
			q.arm(now, wait)
			return
		}
		q.grant(r.Owner.(*pending), self)
	}
}

// grant tells a waiter that its wait is over. mu is held.
func (q *QoS) grant(w, self *pending) {
	w.granted = true
	if w != self {
		w.ready <- struct{}{}
	}
}

// arm has the core asked again after wait; 0: no need. mu is held.
func (q *QoS) arm(now, wait time.Duration) {
	if wait == 0 || q.armed > 0 && q.armed <= now+wait {
		return
	}
	q.armed = now + wait
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.tick)
		return
	}
	q.timer.Reset(wait)
}

// tick runs on the timer's goroutine.
func (q *QoS) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = 0
	q.turn(q.now(), nil)
}

// wait returns nil when the waiter was granted; else it has been recycled.
func (q *QoS) wait(ctx context.Context, w *pending, tag Tag) error {
	var expired <-chan time.Time
	if !tag.Deadline.IsZero() {
		left := time.Until(tag.Deadline)
		if w.timer == nil {
			w.timer = time.NewTimer(left)
		} else {
			w.timer.Reset(left)
		}
		defer w.timer.Stop()
		expired = w.timer.C
	}
	select {
	case <-w.ready:
		return nil
	case <-expired:
		return q.giveUp(w, tooLate())
	case <-ctx.Done():
		return q.giveUp(w, errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for the device"))
	}
}

// giveUp ends a wait; a turn or an admission that was granted meanwhile goes back.
func (q *QoS) giveUp(w *pending, cause error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, key := q.now(), keyOf(&w.req)
	switch {
	case q.core.Cancel(now, &w.req):
	case w.gate:
		<-w.ready
		q.core.Release(key, w.req.Bytes)
	default:
		<-w.ready
		if !w.req.Late {
			q.core.Return(now, &w.req)
		}
	}
	q.admitted(key)
	q.recycle(w)
	q.turn(now, nil)
	return cause
}

// drop recycles a waiter that is not in the core.
func (q *QoS) drop(w *pending, cause error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recycle(w)
	return cause
}

// TryAdmit implements Scheduler.
func (q *QoS) TryAdmit(tag Tag) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.take(tag)
	defer q.recycle(w)
	if !q.core.Passes(keyOf(&w.req), tag.Bytes) {
		return false
	}
	ok, err := q.core.Admit(q.now(), &w.req)
	return ok && err == nil
}

// Admit implements Scheduler.
func (q *QoS) Admit(ctx context.Context, tag Tag) error {
	q.mu.Lock()
	w := q.take(tag)
	w.gate = true
	ok, err := q.core.Admit(q.now(), &w.req)
	if ok || err != nil {
		q.recycle(w)
		q.mu.Unlock()
		return err
	}
	q.mu.Unlock()
	if err := q.wait(ctx, w, tag); err != nil {
		return err
	}
	return q.drop(w, nil)
}

// Release implements Scheduler.
func (q *QoS) Release(tag Tag) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := mclock.Key{Tenant: tag.Tenant, Class: tag.Class}
	q.core.Release(key, tag.Bytes)
	q.admitted(key)
}

// admitted tells those at a flow's gate who may pass it now. mu is held.
func (q *QoS) admitted(key mclock.Key) {
	now := q.now()
	for r := q.core.Admitted(now, key); r != nil; r = q.core.Admitted(now, key) {
		q.grant(r.Owner.(*pending), nil)
	}
}

// Free implements Scheduler.
func (q *QoS) Free(tag Tag) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Free(q.now(), mclock.Key{Tenant: tag.Tenant, Class: tag.Class})
}

// Quantum implements Scheduler.
func (q *QoS) Quantum(write bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Quantum(write)
}

// Load implements Scheduler.
func (q *QoS) Load() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Load()
}

// Stats implements Scheduler.
func (q *QoS) Stats() mclock.Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.core.Stats()
	s.LessonAge = q.now() - s.Taught
	return s
}

// SetClass changes a class's parameters for what waits and what comes.
func (q *QoS) SetClass(class layout.Class, p mclock.Params) error {
	return q.change(func(now time.Duration) error { return q.core.SetClass(now, class, p) })
}

// SetFlow gives one tenant's work in a class parameters of its own.
func (q *QoS) SetFlow(k mclock.Key, p mclock.Params) error {
	return q.change(func(now time.Duration) error { return q.core.SetFlow(now, k, p) })
}

// ResetFlow gives it its class's again.
func (q *QoS) ResetFlow(k mclock.Key) {
	q.change(func(now time.Duration) error { q.core.ResetFlow(now, k); return nil })
}

func (q *QoS) change(do func(now time.Duration) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	err := do(now)
	q.turn(now, nil)
	return err
}

// take gives a waiter for a tag. mu is held.
func (q *QoS) take(tag Tag) *pending {
	w := q.free
	if w == nil {
		w = &pending{ready: make(chan struct{}, 1)}
		w.req.Owner = w
	} else {
		q.free = w.next
	}
	w.next, w.granted, w.gate = nil, false, false
	r := &w.req
	r.Class, r.Tenant, r.Write, r.Part, r.Service, r.Bytes, r.Deadline, r.Late = tag.Class, tag.Tenant, tag.Write, tag.Part, tag.Service, tag.Bytes, 0, false
	if !tag.Deadline.IsZero() {
		r.Deadline = max(1, tag.Deadline.Sub(q.start))
	}
	return w
}

// recycle keeps a waiter for the next; its channel is empty. mu is held.
func (q *QoS) recycle(w *pending) { w.next, q.free = q.free, w }

func keyOf(r *mclock.Request) mclock.Key { return mclock.Key{Tenant: r.Tenant, Class: r.Class} }

func tooLate() error {
	return errs.New(errs.Deadline, "", "the device's turn did not come in time to meet the deadline")
}
