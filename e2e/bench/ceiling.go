package bench

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
)

const (
	ceilingConns = 6
	// maxMessage is the longest message of a ceiling: a client asks one server
	// for at most a unit at a time.
	maxMessage = mib
	// askBytes is the length of what goes the other way than the payload.
	askBytes = 16
)

// ceiling is the bare exchange that a case is compared with: over up to six TCP
// connections between two processes, one goroutine at each end of each, one write
// and one read call per message, no framing. What the case has under way is spread
// over the connections in messages of at most 1 MiB.
type ceiling struct {
	Message int   // bytes
	Windows []int // messages under way, by connection
	Write   bool  // payload goes to the peer
}

// ceilingOf gives the exchange of a case with so many clients.
func ceilingOf(c Case, clients int) ceiling {
	if c.Clients > 0 {
		clients = c.Clients
	}
	size := c.Block
	if c.Smallest > 0 {
		size = (c.Block + c.Smallest) / 2
	}
	message := min(size, maxMessage)
	messages := int(int64(clients*c.Depth) * size / message)
	out := ceiling{Message: int(message), Write: c.Write}
	for i := range min(ceilingConns, messages) {
		out.Windows = append(out.Windows, (messages+ceilingConns-1-i)/ceilingConns)
	}
	return out
}

// toPeer and fromPeer are the lengths of the two messages of an exchange.
func (c ceiling) toPeer() int {
	if c.Write {
		return c.Message
	}
	return askBytes
}

func (c ceiling) fromPeer() int {
	if c.Write {
		return askBytes
	}
	return c.Message
}

// peer is the far side of a ceiling. close it.
type peer struct {
	listener net.Listener
	served   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func servePeer(c ceiling) (*peer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errs.As(err, errs.Unavailable, "listen for a ceiling")
	}
	p := &peer{listener: l}
	p.served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, conn)
			p.mu.Unlock()
			p.served.Go(func() { answer(conn, c) })
		}
	})
	return p, nil
}

func (p *peer) address() string { return p.listener.Addr().String() }

func (p *peer) close() {
	p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.served.Wait()
}

// answer answers each message with one, until the connection ends.
func answer(conn net.Conn, c ceiling) {
	defer conn.Close()
	in, out := make([]byte, c.toPeer()), make([]byte, c.fromPeer())
	for {
		if _, err := io.ReadFull(conn, in); err != nil {
			return
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// exchange is the near side: it keeps each connection's window full for a time.
func exchange(ctx context.Context, c ceiling, address string, seconds float64) (*tally, error) {
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range c.Windows {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return nil, errs.As(err, errs.Unavailable, "connect for a ceiling")
		}
		conns = append(conns, conn)
	}
	r := newRecorder(seconds)
	r.start()
	end := r.begin.Add(time.Duration(seconds * float64(time.Second)))
	group, ctx := errgroup.WithContext(ctx)
	for i, conn := range conns {
		group.Go(func() error { return ask(ctx, conn, c, c.Windows[i], r, end) })
	}
	if err := group.Wait(); err != nil {
		return nil, errs.As(err, errs.Unavailable, "exchange messages for a ceiling")
	}
	t, err := r.tally()
	return &t, err
}

// ask keeps one connection's window full until the end, and empties it then.
func ask(ctx context.Context, conn net.Conn, c ceiling, window int, r *recorder, end time.Time) error {
	out, in := make([]byte, c.toPeer()), make([]byte, c.fromPeer())
	began := make([]time.Time, 0, window) // of the messages under way, oldest first
	send := func() error {
		began = append(began, time.Now())
		_, err := conn.Write(out)
		return err
	}
	for range window {
		if err := send(); err != nil {
			return err
		}
	}
	for len(began) > 0 {
		if _, err := io.ReadFull(conn, in); err != nil {
			return err
		}
		r.add(began[0], c.Message)
		began = append(began[:0], began[1:]...)
		if time.Now().Before(end) && ctx.Err() == nil {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return nil
}
