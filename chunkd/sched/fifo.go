package sched

import (
	"context"
	"sync"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
)

const (
	// DefaultWidth is how many pieces of work a device gets at once.
	DefaultWidth = 64
	// DefaultDepth bounds the pieces that wait.
	DefaultDepth = 4096
)

// FIFO is the Scheduler that serves in order of arrival.
type FIFO struct {
	width, depth int

	mu          sync.Mutex // guards all below; held for a few instructions only
	running     int
	waiting     int
	first, last *waiter
	free        *waiter // those that can be used again
}

// waiter is one piece of work in the queue. Its fields are guarded by FIFO.mu.
type waiter struct {
	ready      chan struct{} // capacity 1: the slot is yours
	prev, next *waiter
	queued     bool
}

var _ Scheduler = (*FIFO)(nil)

// NewFIFO makes a FIFO; zero stands for the default of each figure.
func NewFIFO(width, depth int) *FIFO {
	if width <= 0 {
		width = DefaultWidth
	}
	if depth <= 0 {
		depth = DefaultDepth
	}
	return &FIFO{width: width, depth: depth}
}

// Do implements Scheduler.
func (f *FIFO) Do(ctx context.Context, tag Tag, fn func()) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.leave()
	if !tag.Deadline.IsZero() && time.Now().After(tag.Deadline) {
		return errs.New(errs.Deadline, "", "the deadline passed before the device's turn came")
	}
	fn()
	return nil
}

// TryAdmit implements Scheduler: FIFO admits at once, its caller's memory budget is
// the only brake.
func (f *FIFO) TryAdmit(Tag) bool { return true }

// Admit implements Scheduler.
func (f *FIFO) Admit(context.Context, Tag) error { return nil }

// Release implements Scheduler.
func (f *FIFO) Release(Tag) {}

// Free implements Scheduler.
func (f *FIFO) Free(Tag) bool { return f.Load() < f.width }

// Quantum implements Scheduler.
func (f *FIFO) Quantum(bool) int { return Quantum }

// Stats implements Scheduler: FIFO counts nothing but what it holds now.
func (f *FIFO) Stats() mclock.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return mclock.Stats{Width: f.width, Running: f.running, Waiting: f.waiting, Quantum: [2]int{Quantum, Quantum}}
}

// Load implements Scheduler.
func (f *FIFO) Load() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running + f.waiting
}

// enter takes a slot, at once or when one is handed over.
func (f *FIFO) enter(ctx context.Context) error {
	f.mu.Lock()
	if f.running < f.width {
		f.running++
		f.mu.Unlock()
		return nil
	}
	if f.waiting >= f.depth {
		f.mu.Unlock()
		return errs.New(errs.Overloaded, "", "%d requests wait for the device", f.depth).WithHint("back off and try again")
	}
	w := f.push()
	f.mu.Unlock()
	select {
	case <-w.ready:
		f.recycle(w)
		return nil
	case <-ctx.Done():
		return f.giveUp(w, ctx.Err())
	}
}

// leave frees a slot or hands it to the first waiter.
func (f *FIFO) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.first; w != nil {
		f.remove(w)
		w.ready <- struct{}{}
		return
	}
	f.running--
}

// giveUp ends a wait; a slot that was handed over meanwhile goes on to the next.
func (f *FIFO) giveUp(w *waiter, cause error) error {
	f.mu.Lock()
	queued := w.queued
	if queued {
		f.remove(w)
	}
	f.mu.Unlock()
	if !queued {
		<-w.ready
		f.leave()
	}
	f.recycle(w)
	return errs.As(cause, errs.KindOf(cause), "wait for the device")
}

// push appends a waiter to the queue. mu is held.
func (f *FIFO) push() *waiter {
	w := f.free
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1)}
	} else {
		f.free = w.next
	}
	w.prev, w.next, w.queued = f.last, nil, true
	if f.last == nil {
		f.first = w
	} else {
		f.last.next = w
	}
	f.last = w
	f.waiting++
	return w
}

// remove takes a waiter out of the queue. mu is held.
func (f *FIFO) remove(w *waiter) {
	if w.prev == nil {
		f.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		f.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued = false
	f.waiting--
}

// recycle keeps a waiter for the next that must wait; its channel is empty.
func (f *FIFO) recycle(w *waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.prev, w.next, f.free = nil, f.free, w
}
