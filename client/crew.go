package client

import "sync"

// crew runs goroutines that their owner waits for. The zero value works; safe
// for concurrent use.
type crew struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	wait   sync.WaitGroup
}

// start runs f on a goroutine of its own; false after close: f does not run.
func (c *crew) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wait.Go(f)
	return true
}

// close lets no more goroutines in and waits for those that run.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wait.Wait()
}
