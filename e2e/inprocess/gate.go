package inprocess

import (
	"net"
	"sync"
)

// gateBuffer is how much a gate moves at once, in bytes.
const gateBuffer = 64 << 10

// gate passes TCP connections on to a server that may come and go behind it. It
// takes connections before its server is known, and passes them on then.
type gate struct {
	address string
	done    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while the gate is closed
	known    chan struct{}         // guarded by mu: closed when target is known, or the gate is closed
	target   string                // guarded by mu
	conns    map[net.Conn]struct{} // guarded by mu: both sides of all connections
	paused   chan struct{}         // guarded by mu: closed when the pause ends; nil: no pause
	held     int                   // guarded by mu: connections and directions whose bytes the pause holds up
}

// newGate makes an open gate.
func newGate() (*gate, error) {
	g := &gate{address: "127.0.0.1:0", conns: map[net.Conn]struct{}{}}
	return g, g.open()
}

// open takes connections; it does nothing when the gate is open.
func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", g.address)
	if err != nil {
		return err
	}
	g.listener, g.address, g.known = l, l.Addr().String(), make(chan struct{})
	known := g.known
	g.done.Go(func() { g.accept(l, known) })
	return nil
}

// lead tells where the server is.
func (g *gate) lead(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
	close(g.known)
	g.known = nil
}

// close breaks all connections and refuses new ones.
func (g *gate) close() {
	g.resume()
	g.mu.Lock()
	if g.listener != nil {
		g.listener.Close()
		g.listener = nil
	}
	if g.known != nil {
		close(g.known)
		g.known = nil
	}
	g.target = ""
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
		g.paused, g.held = nil, 0
	}
}

// holds tells whether bytes are held up.
func (g *gate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0
}

// sever breaks all connections and takes new ones; a pause ends, and what it held up
// is lost.
func (g *gate) sever() {
	g.mu.Lock()
	for c := range g.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	g.mu.Unlock()
	g.resume()
}

func (g *gate) accept(l net.Listener, known <-chan struct{}) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		g.done.Go(func() { g.connect(l, near, known) })
	}
}

// connect joins a connection with one to the server.
func (g *gate) connect(l net.Listener, near net.Conn, known <-chan struct{}) {
	<-known
	g.mu.Lock()
	target := g.target
	g.mu.Unlock()
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
		if paused != nil && n > 0 {
			g.held++
		}
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
