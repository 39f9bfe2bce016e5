package mux

import (
	"net"
	"sync"
)

// sortedConn is a connection whose first byte was read ahead.
type sortedConn struct {
	net.Conn
	mux    *Mux
	first  byte
	unread bool // first was not given to the reader yet; the reader's alone
}

// Read gives the first byte, then what follows.
func (c *sortedConn) Read(p []byte) (int, error) {
	if !c.unread || len(p) == 0 {
		return c.Conn.Read(p)
	}
	p[0], c.unread = c.first, false
	return 1, nil
}

// Close closes the connection.
func (c *sortedConn) Close() error {
	c.mux.forget(c.Conn)
	return c.Conn.Close()
}

// half is the listener of one protocol.
type half struct {
	mux    *Mux
	conns  chan net.Conn // hand-off from sort to Accept
	closed chan struct{}
	once   sync.Once
}

func newHalf(m *Mux) *half {
	return &half{mux: m, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// offer waits for an Accept, or closes conn when nobody will come.
func (h *half) offer(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.closed:
		conn.Close()
	case <-h.mux.closed:
		conn.Close()
	}
}

// Accept implements net.Listener.
func (h *half) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	case <-h.mux.closed:
		return nil, net.ErrClosed
	}
}

// Close ends this half; the port stays open for the other.
func (h *half) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr is the shared port.
func (h *half) Addr() net.Addr { return h.mux.below.Addr() }
