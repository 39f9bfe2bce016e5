package simclient

import (
	"iter"
	"slices"
)

// Fiber is a function that waits without holding up the loop that runs it.
type Fiber struct {
	work   func(*Fiber)
	on     *coroutine
	parked bool
	dead   bool // killed: every Wait returns false at once
	over   bool // the function returned
}

// coroutine runs fibers, one after another: a stack that has grown is dear.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	runs  *Fiber
}

// Pool keeps coroutines for use again. One thread at a time may use it.
type Pool struct{ idle []*coroutine }

// take gives an idle coroutine or a new one.
func (p *Pool) take() *coroutine {
	if n := len(p.idle) - 1; n >= 0 {
		c := p.idle[n]
		p.idle = p.idle[:n]
		return c
	}
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for {
			f := c.runs
			f.work(f)
			f.over = true
			f.work, c.runs = nil, nil // an idle coroutine keeps nothing of its last run
			if f.dead {
				return // it may be unwinding: its coroutine ends with it
			}
			p.idle = append(p.idle, c)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// Close ends the idle coroutines.
func (p *Pool) Close() {
	for _, c := range p.idle {
		c.stop()
	}
	p.idle = nil
}

// Fibers are the fibers of one process, or of one term.
type Fibers struct {
	Pool *Pool
	list []*Fiber
	most int // of list, before those that are over are dropped
}

// Go runs work until it first waits.
func (s *Fibers) Go(work func(*Fiber)) {
	if len(s.list) >= s.most {
		s.list = slices.DeleteFunc(s.list, func(f *Fiber) bool { return f.over })
		s.most = 2*len(s.list) + 16
	}
	f := &Fiber{work: work, on: s.Pool.take()}
	f.on.runs = f
	s.list = append(s.list, f)
	f.on.next()
}

// Kill ends all of them.
func (s *Fibers) Kill() {
	list := s.list
	s.list = nil
	for _, f := range list {
		f.Kill()
	}
}

// Wait calls start and returns when done was called, during start or later;
// only the first call of done counts. It returns false when the fiber was killed.
func (f *Fiber) Wait(start func(done func())) bool {
	if f.dead {
		return false
	}
	fired, waiting := false, false
	start(func() {
		if fired || f.dead {
			return
		}
		fired = true
		if waiting {
			f.parked = false
			f.on.next()
		}
	})
	if fired {
		return true
	}
	waiting, f.parked = true, true
	if !f.on.yield(struct{}{}) {
		f.dead = true
		return false
	}
	return true
}

// Kill ends a fiber at the place where it waits. The loop calls it, or another fiber.
func (f *Fiber) Kill() {
	f.dead = true
	if f.parked && !f.over {
		f.parked = false
		f.on.stop()
	}
}

// cond is a place where fibers wait for a change.
type cond struct{ waiting []func() }

// wait waits for the next broadcast.
func (c *cond) wait(f *Fiber) bool {
	return f.Wait(func(done func()) { c.waiting = append(c.waiting, done) })
}

func (c *cond) broadcast() {
	list := c.waiting
	c.waiting = nil
	for _, done := range list {
		done()
	}
}

// mutex lets one fiber in at a time.
type mutex struct {
	held bool
	free cond
}

func (m *mutex) lock(f *Fiber) bool {
	for m.held {
		if !m.free.wait(f) {
			return false
		}
	}
	m.held = true
	return true
}

func (m *mutex) unlock() {
	m.held = false
	m.free.broadcast()
}

// Alive tells that the fiber was not killed.
func (f *Fiber) Alive() bool { return !f.dead }
