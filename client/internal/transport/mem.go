package transport

import (
	"context"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/proto/frame"
)

// Fate is what happens to one request on its way. The zero value is a request
// that arrives and is answered.
type Fate struct {
	Cut        bool          // the connection breaks; nothing arrives
	Lose       bool          // the request is lost, and the call stays under way
	LoseReply  bool          // the request arrives, its reply is lost
	Duplicate  bool          // the request arrives twice; the first reply counts
	Delay      time.Duration // before it arrives; unequal delays reorder
	ReplyDelay time.Duration // between reply and Done
}

// MemOptions of a Mem transport. The zero value means a fair network.
type MemOptions struct {
	// Fate decides over each request; nil: all are well. It is called in the
	// order of Submit, so that a seeded source gives one history per seed.
	Fate func(addr string, req *frame.Request) Fate
	// After runs f in d or more, one f at a time. With it no goroutine and no
	// timer is used, so that a simulator owns time and order: handlers and Dones
	// run inside the simulator's steps, and handlers answer Hello before they
	// return. nil: each connection has a goroutine.
	After  func(d time.Duration, f func())
	Window int // payload bytes under way in each direction; 0: DefaultWindow
}

// Mem is the transport inside one process. Safe for concurrent use.
type Mem struct {
	options MemOptions

	mu      sync.Mutex
	servers map[string]*memServer // guarded by mu
}

type memServer struct {
	handler Handler
	conns   map[*memConn]bool // guarded by Mem.mu
}

// NewMem makes a Mem transport without servers.
func NewMem(o MemOptions) *Mem {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	return &Mem{options: o, servers: map[string]*memServer{}}
}

// Serve starts a server at an address, in place of one that was there.
func (m *Mem) Serve(addr string, h Handler) {
	m.Stop(addr)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers[addr] = &memServer{handler: h, conns: map[*memConn]bool{}}
}

// Stop ends the server at an address: its connections break, new ones are
// refused.
func (m *Mem) Stop(addr string) {
	m.mu.Lock()
	s := m.servers[addr]
	delete(m.servers, addr)
	var conns []*memConn
	if s != nil {
		for c := range s.conns {
			conns = append(conns, c)
		}
	}
	m.mu.Unlock()
	for _, c := range conns {
		c.fail(errs.New(errs.Unavailable, "connection to "+addr, "the server stopped"))
	}
}

// Dial connects and says hello.
func (m *Mem) Dial(ctx context.Context, addr string, hello frame.HelloBody) (Conn, error) {
	m.mu.Lock()
	s := m.servers[addr]
	m.mu.Unlock()
	if s == nil {
		return nil, errs.New(errs.Unavailable, "connect to "+addr, "connection refused")
	}
	peer, err := m.hello(ctx, s, addr, hello)
	if err != nil {
		return nil, errs.Wrap(err, "say hello to %s", addr)
	}
	c := newMemConn(m, s, addr, peer)
	m.mu.Lock()
	s.conns[c] = true
	gone := m.servers[addr] != s
	m.mu.Unlock()
	if gone {
		c.Close()
		return nil, errs.New(errs.Unavailable, "connect to "+addr, "the server stopped")
	}
	return c, nil
}

func (m *Mem) hello(ctx context.Context, s *memServer, addr string, body frame.HelloBody) (frame.HelloReply, error) {
	req := frame.Request{Kind: frame.Hello}
	if fate := m.fate(addr, &req); fate.Cut || fate.Lose || fate.LoseReply {
		return frame.HelloReply{}, errs.New(errs.Unavailable, "", "the connection broke")
	}
	type answer struct {
		status errs.Kind
		meta   []byte
	}
	answers := make(chan answer, 1)
	var once sync.Once
	s.handler(req, body.AppendTo(nil), nil, func(r frame.Reply, meta []byte, _ ...[]byte) {
		once.Do(func() { answers <- answer{r.Status, append([]byte(nil), meta...)} })
	})
	select {
	case a := <-answers:
		if a.status != errs.OK {
			return frame.HelloReply{}, frame.DecodeError(a.status, a.meta)
		}
		return frame.DecodeHelloReply(a.meta)
	case <-ctx.Done():
		return frame.HelloReply{}, ctx.Err()
	}
}

// Register does nothing.
func (m *Mem) Register([]byte) (Region, error) { return noRegion{}, nil }

func (m *Mem) fate(addr string, req *frame.Request) Fate {
	if m.options.Fate == nil {
		return Fate{}
	}
	return m.options.Fate(addr, req)
}

func (m *Mem) forget(s *memServer, c *memConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(s.conns, c)
}
