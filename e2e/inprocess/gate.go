package inprocess

import (
	"net"
	"sync"
)

// gateBuffer is how much a gate moves at once, in bytes.
const gateBuffer = 64 << 10

// gate passes TCP connections on to a server that may come and go behind it.
type gate struct {
	address string
	done    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while the gate is closed
	target   string                // guarded by mu
	conns    map[net.Conn]struct{} // guarded by mu: both sides of all connections
	paused   chan struct{}         // guarded by mu: closed when the pause ends; nil: no pause
}

// newGate makes a gate that is closed; its address is known from now on.
func newGate() (*gate, error) {
	list, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	return &gate{address: list[0], conns: map[net.Conn]struct{}{}}, nil
}

// open lets connections through to a server.
func (g *gate) open(target string) error {
	l, err := net.Listen("tcp", g.address)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.listener, g.target = l, target
	g.mu.Unlock()
	g.done.Go(func() { g.accept(l, target) })
	return nil
}

// close breaks all connections and refuses new ones.
func (g *gate) close() {
	g.resume()
	g.mu.Lock()
	if g.listener != nil {
		g.listener.Close()
		g.listener = nil
	}
	for c := range g.conns {
		c.(*net.TCPConn).SetLinger(0) // a reset, as from a killed process
		c.Close()
	}
	g.mu.Unlock()
	g.done.Wait()
}

// pause holds up all bytes, in both directions, until resume or close.
func (g *gate) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused == nil {
		g.paused = make(chan struct{})
	}
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused != nil {
		close(g.paused)
		g.paused = nil
	}
}

func (g *gate) accept(l net.Listener, target string) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		g.done.Go(func() { g.connect(l, near, target) })
	}
}

// connect joins a connection with one to the server.
func (g *gate) connect(l net.Listener, near net.Conn, target string) {
	far, err := net.Dial("tcp", target)
	if err != nil {
		near.Close()
		return
	}
	g.mu.Lock()
	if g.listener != l {
		g.mu.Unlock()
		near.Close()
		far.Close()
		return
	}
	g.conns[near], g.conns[far] = struct{}{}, struct{}{}
	g.mu.Unlock()
	g.done.Go(func() { g.copy(near, far) })
	g.copy(far, near)
}

// copy moves bytes until either side ends, then ends both.
func (g *gate) copy(to, from net.Conn) {
	buf := make([]byte, gateBuffer)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		paused := g.paused
		g.mu.Unlock()
		if paused != nil {
			<-paused
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			break
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		c.Close()
		delete(g.conns, c)
	}
}
