package transport

import (
	"context"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

const (
	// maxConns bounds the connections of a pool by default.
	maxConns = 4096
	// dialTimeout bounds one attempt to connect; a caller's context may end its
	// own wait earlier.
	dialTimeout = 2 * time.Second
	// firstPause and longestPause bound the wait after failed attempts.
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// PoolOptions of a Pool. The zero value of each field means the default.
type PoolOptions struct {
	// Hello is what connections say; it is asked for each, so that a renewed
	// token is used.
	Hello func(addr string) frame.HelloBody
	// Most bounds the connections.
	Most int
}

// Pool keeps connections by address: one per lane. It connects on first use and
// again after a connection broke or closed for idleness; after a failed attempt
// it refuses for a pause that doubles. Safe for concurrent use.
type Pool struct {
	transport Transport
	options   PoolOptions
	dials     sync.WaitGroup // Add under mu

	mu     sync.Mutex
	lanes  map[laneKey]*lane // guarded by mu
	closed bool              // guarded by mu
}

// laneKey names a connection. Classes that must not wait for each other's
// payloads have lanes of their own.
type laneKey struct {
	addr  string
	class layout.Class
}

// lane is one place for a connection. Guarded by Pool.mu.
type lane struct {
	conn    Conn          // nil before the first success
	dialing chan struct{} // closed when the attempt under way has ended; nil: none
	cancel  func()        // ends the attempt
	err     error         // of the last attempt
	pause   time.Duration // after the last attempt
	retry   time.Time     // no attempt before
	used    time.Time
}

// NewPool makes an empty pool.
func NewPool(t Transport, o PoolOptions) *Pool {
	if o.Most <= 0 {
		o.Most = maxConns
	}
	if o.Hello == nil {
		o.Hello = func(string) frame.HelloBody { return frame.HelloBody{} }
	}
	return &Pool{transport: t, options: o, lanes: map[laneKey]*lane{}}
}

// Get gives the connection of an address that all classes share.
func (p *Pool) Get(ctx context.Context, addr string) (Conn, error) {
	return p.GetLane(ctx, addr, layout.ClassDefault)
}

// GetLane gives the connection of an address and class. Errors: Unavailable (at
// once while it pauses after a failure, with the cause), Deadline, Canceled,
// Overloaded when the pool is full of connections in use, Closed, and what
// hello was refused with.
func (p *Pool) GetLane(ctx context.Context, addr string, class layout.Class) (Conn, error) {
	for {
		p.mu.Lock()
		l, err := p.lane(laneKey{addr, class})
		if err != nil {
			p.mu.Unlock()
			return nil, err
		}
		if l.conn != nil && l.conn.Err() == nil {
			conn := l.conn
			p.mu.Unlock()
			touch(conn)
			return conn, nil
		}
		if l.dialing == nil && l.err != nil && l.used.Before(l.retry) {
			defer p.mu.Unlock()
			return nil, errs.Wrap(l.err, "still pausing after a failure")
		}
		p.dial(l, addr)
		dialing := l.dialing
		p.mu.Unlock()
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, errs.Wrap(ctx.Err(), "connect to %s", addr)
		}
		if err := p.outcome(l); err != nil {
			return nil, err
		}
	}
}

// lane finds or makes a lane. mu is held.
func (p *Pool) lane(key laneKey) (*lane, error) {
	if p.closed {
		return nil, errs.New(errs.Closed, "connect to "+key.addr, "the pool is closed")
	}
	l := p.lanes[key]
	if l == nil {
		if len(p.lanes) >= p.options.Most && !p.evict() {
			return nil, errs.New(errs.Overloaded, "connect to "+key.addr, "%d connections are open", len(p.lanes))
		}
		l = &lane{}
		p.lanes[key] = l
	}
	l.used = time.Now()
	return l, nil
}

// evict forgets the lane without a working connection that was used longest
// ago. Working ones close by themselves when they are idle. mu is held.
func (p *Pool) evict() bool {
	var oldest laneKey
	var found *lane
	for key, l := range p.lanes {
		idle := l.dialing == nil && (l.conn == nil || l.conn.Err() != nil)
		if idle && (found == nil || l.used.Before(found.used)) {
			oldest, found = key, l
		}
	}
	if found == nil {
		return false
	}
	delete(p.lanes, oldest)
	return true
}

// dial starts an attempt unless one is under way. All who wait for the lane
// share it, so it does not end with any one's context. mu is held.
func (p *Pool) dial(l *lane, addr string) {
	if l.dialing != nil {
		return
	}
	l.dialing = make(chan struct{})
	old := l.conn
	l.conn = nil
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	l.cancel = cancel
	p.dials.Go(func() {
		defer cancel()
		if old != nil {
			old.Close() // it has failed: this only waits for its goroutines
		}
		conn, err := p.transport.Dial(ctx, addr, p.options.Hello(addr))
		p.settle(l, conn, err)
	})
}

// settle notes how an attempt ended.
func (p *Pool) settle(l *lane, conn Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.closed {
		p.dials.Go(func() { conn.Close() })
		conn, err = nil, errs.New(errs.Closed, "connect", "the pool is closed")
	}
	l.err = err
	if err != nil {
		l.pause = min(max(2*l.pause, firstPause), longestPause)
		l.retry = time.Now().Add(l.pause)
	} else {
		l.conn, l.pause = conn, 0
	}
	close(l.dialing)
	l.dialing = nil
}

func (p *Pool) outcome(l *lane) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.err
}

// touch keeps an idle connection open for who is about to use it.
func touch(c Conn) {
	if t, ok := c.(interface{ touch() }); ok {
		t.touch()
	}
}

// Len is how many lanes the pool has.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lanes)
}

// Close closes all connections and waits for attempts under way.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	lanes := p.lanes
	p.lanes = nil
	for _, l := range lanes {
		if l.dialing != nil {
			l.cancel()
		}
	}
	p.mu.Unlock()
	p.dials.Wait()
	for _, l := range lanes {
		if l.conn != nil {
			l.conn.Close()
		}
	}
}
