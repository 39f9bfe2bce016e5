package server

import (
	"sync"

	"strake/proto/frame"
)

// lane is where a connection's appends go while their device is slow, so that
// they stay in order and hold up nothing else. Syncs that come after them go
// through it too. The connection's goroutine puts requests in; one goroutine,
// which lives while there are any, takes them out. Each holds one of the
// connection's slots, which bounds the queue.
type lane struct {
	mu    sync.Mutex
	queue []*request // guarded by mu
	busy  bool       // guarded by mu: the goroutine lives
}

// active tells whether a request is in the lane. Only the connection's goroutine
// asks, and only it puts requests in.
func (l *lane) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}

// push appends a request; start tells the caller to start the goroutine.
func (l *lane) push(r *request) (start bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, r)
	start, l.busy = !l.busy, true
	return start
}

// pop takes the first request; nil ends the goroutine.
func (l *lane) pop() *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.queue, l.busy = nil, false
		return nil
	}
	r := l.queue[0]
	l.queue[0], l.queue = nil, l.queue[1:]
	return r
}

// enlist puts the current request into the lane.
func (c *conn) enlist() error {
	r, err := c.handOver()
	if err != nil {
		c.release(c.current)
		return err
	}
	if c.lane.push(r) {
		c.jobs.Go(c.runLane)
	}
	return nil
}

// runLane serves the lane until it is empty.
func (c *conn) runLane() {
	for r := c.lane.pop(); r != nil; r = c.lane.pop() {
		if r.Kind == frame.Sync {
			c.aside(r, (*conn).syncAside)
			continue
		}
		switch err := c.store(r); {
		case err == nil && r.Flags&frame.Durable != 0:
			c.aside(r, (*conn).syncAside)
		default:
			c.complete(r, func(c *conn, r *request, out *batch) { c.finish(r, out, nil, err) })
		}
	}
}
