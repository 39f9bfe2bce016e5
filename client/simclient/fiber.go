package simclient

import "iter"

// Fiber is a function that waits without holding up the loop that runs it.
type Fiber struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	parked bool
	dead   bool // killed: every Wait returns false at once
	over   bool // the function returned
}

// NewFiber makes a fiber; Start runs it.
func NewFiber(work func(*Fiber)) *Fiber {
	f := &Fiber{}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		work(f)
		f.over = true
	})
	return f
}

// Start runs the fiber until it first waits.
func (f *Fiber) Start() {
	if !f.dead {
		f.next()
	}
}

// Fibers are the fibers of one process, or of one term.
type Fibers struct{ list []*Fiber }

// Go runs work until it first waits.
func (s *Fibers) Go(work func(*Fiber)) {
	live := s.list[:0]
	for _, f := range s.list {
		if !f.over {
			live = append(live, f)
		}
	}
	clear(s.list[len(live):])
	f := NewFiber(work)
	s.list = append(live, f)
	f.Start()
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
			f.next()
		}
	})
	if fired {
		return true
	}
	waiting, f.parked = true, true
	if !f.yield(struct{}{}) {
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
		f.stop()
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
