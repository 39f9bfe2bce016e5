package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Limits bound what peers can take; zero stands for the default of each.
type Limits struct {
	Connections  int           // open at once; default 16384
	ConnRequests int           // of one connection on goroutines of their own; default 64
	Memory       int64         // bytes of large payloads in memory; default 256 MiB, at least two payloads
	Idle         time.Duration // a connection without a request for so long is closed; default 60 s
	Write        time.Duration // a peer that takes no reply for so long is cut off; default 30 s
}

func (l Limits) orDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Connections, 16384)
	def(&l.ConnRequests, 64)
	if l.Memory <= 0 {
		l.Memory = 256 << 20
	}
	l.Memory = max(l.Memory, 2*bufferLen<<(classes-1))
	if l.Idle <= 0 {
		l.Idle = time.Minute
	}
	if l.Write <= 0 {
		l.Write = 30 * time.Second
	}
	return l
}

// Config is what a server is made of.
type Config struct {
	Cell    layout.CellID
	Server  layout.ServerID
	Devices []Device
	FIFO    bool // no quality of service: devices serve in the order of arrival
	Limits  Limits
	Logger  *slog.Logger // nil: no log lines
}

// Counters count what happened since the start.
type Counters struct {
	Connections atomic.Int64  // open now
	Refused     atomic.Uint64 // connections over the limit
	BadFrames   atomic.Uint64 // connections that a malformed frame ended
	Calls       atomic.Uint64 // system calls on connections, those too that found nothing to move
	CopiedBytes atomic.Uint64 // of payloads that came with a header: they are copied to their own memory
}

// Server is the data plane of a chunk server.
type Server struct {
	cell     layout.CellID
	id       layout.ServerID
	devices  *devices
	limits   Limits
	log      *slog.Logger
	Counters Counters

	pool     buffers
	memory   *budget
	requests sync.Pool // of *request
	batches  sync.Pool // of *batch
	volumes  volumes
	slos     slos
	known    atomic.Pointer[[256]bool] // the cell's classes; nil: nobody said

	ctx    context.Context // ends when connections must not wait any longer
	cancel context.CancelFunc

	mu      sync.Mutex
	closing bool                      // guarded by mu
	accepts map[net.Listener]struct{} // guarded by mu
	conns   map[*conn]struct{}        // guarded by mu
	running sync.WaitGroup            // accept loops and connections
}

// New makes a server; Serve starts it.
func New(cfg Config) *Server {
	s := &Server{cell: cfg.Cell, id: cfg.Server, devices: newDevices(cfg.Devices, cfg.FIFO), limits: cfg.Limits.orDefaults(), log: cfg.Logger,
		accepts: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.memory = newBudget(s.limits.Memory)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// ID is the server's id.
func (s *Server) ID() layout.ServerID { return s.id }

// Serve accepts connections until Close, which closes the listener. It returns
// nil after Close, else why the listener failed.
func (s *Server) Serve(l net.Listener) error {
	if !s.enter(l) {
		l.Close()
		return nil
	}
	defer s.running.Done()
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.start(nc)
			continue
		}
		if s.isClosing() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return errs.As(err, errs.Closed, "accept on %s", l.Addr())
		}
		// Out of descriptors, or the peer left already: both pass.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
	}
}

// enter registers an accept loop; false once the server closes.
func (s *Server) enter(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.accepts[l] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// start gives a connection its goroutine, or closes it: over the limit, or too late.
func (s *Server) start(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.conns) >= s.limits.Connections {
		s.Counters.Refused.Add(1)
		nc.Close()
		return
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	s.Counters.Connections.Add(1)
	s.running.Go(func() { c.serve() })
}

// ended forgets a connection and says why it ended, if anybody would care.
func (s *Server) ended(c *conn, err error) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.Counters.Connections.Add(-1)
	if isMalformed(err) {
		s.Counters.BadFrames.Add(1)
		s.log.Warn("malformed frame, connection closed", "peer", c.nc.RemoteAddr(), "err", err)
	} else if err != io.EOF {
		s.log.Debug("connection closed", "peer", c.nc.RemoteAddr(), "err", err)
	}
}

// Close stops accepting and drains: requests that were received are answered.
// When ctx ends first, connections are cut. It returns once no goroutine of the
// server is left.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	for l := range s.accepts {
		l.Close()
	}
	for c := range s.conns {
		c.in.stop()
	}
	s.mu.Unlock()
	cut := context.AfterFunc(ctx, s.cut)
	s.running.Wait()
	cut()
	s.cancel()
}

// cut ends all connections at once.
func (s *Server) cut() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.nc.Close()
	}
}

func (s *Server) getRequest() *request {
	if r, ok := s.requests.Get().(*request); ok {
		return r
	}
	return newRequest()
}

func (s *Server) putRequest(r *request) { s.requests.Put(r) }

func (s *Server) getBatch() *batch {
	if b, ok := s.batches.Get().(*batch); ok {
		return b
	}
	return &batch{pool: &s.pool, memory: s.memory}
}

func (s *Server) putBatch(b *batch) { s.batches.Put(b) }
