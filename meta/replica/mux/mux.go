// Package mux lets a metadata server's two protocols share one port.
//
// A raft connection begins with an RPC number, 0 to 4; a gRPC connection begins
// with the HTTP/2 preface, whose first byte is 'P'. Mux reads that one byte and
// hands the connection to the listener that understands it; what begins with
// any other byte is closed. So the address list is all that an operator
// configures.
//
// One goroutine accepts, and one for each connection that has not sent its
// first byte yet; those are bounded in number and in time. Close ends them all
// and closes every raft connection that was handed out: raft's transport does
// not end its readers by itself.
package mux

import (
	"net"
	"sync"
	"time"
)

const (
	// maxUnsorted bounds the connections that have not sent a byte yet.
	maxUnsorted = 1024
	// firstByteTimeout bounds how long such a connection may be silent.
	firstByteTimeout = 10 * time.Second
	// lastRaftByte is the highest RPC number of raft's network transport.
	lastRaftByte = 4
	// prefaceByte begins the HTTP/2 preface.
	prefaceByte = 'P'
	// acceptPause is the wait after an accept that failed for want of descriptors.
	acceptPause = 10 * time.Millisecond
)

// Mux sorts the connections of one listener.
type Mux struct {
	below      net.Listener
	raft, grpc *half
	unsorted   chan struct{} // a place for each connection without a first byte
	closed     chan struct{}
	wg         sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu: unsorted and raft connections
	done  bool                  // guarded by mu
}

// New starts sorting the connections of a listener, which it owns from now on.
func New(below net.Listener) *Mux {
	m := &Mux{
		below: below, unsorted: make(chan struct{}, maxUnsorted),
		closed: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	m.raft, m.grpc = newHalf(m), newHalf(m)
	m.wg.Add(1)
	go m.accept()
	return m
}

// Raft is the listener of raft's connections.
func (m *Mux) Raft() net.Listener { return m.raft }

// GRPC is the listener of gRPC's connections.
func (m *Mux) GRPC() net.Listener { return m.grpc }

// Close closes the listener and every connection that is not gRPC's, and waits
// for the goroutines.
func (m *Mux) Close() error {
	m.mu.Lock()
	if m.done {
		m.mu.Unlock()
		return nil
	}
	m.done = true
	close(m.closed)
	for c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	err := m.below.Close()
	m.wg.Wait()
	return err
}

func (m *Mux) accept() {
	defer m.wg.Done()
	for {
		conn, err := m.below.Accept()
		if err != nil {
			select {
			case <-m.closed:
				return
			case <-time.After(acceptPause):
				continue
			}
		}
		select {
		case m.unsorted <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		if !m.adopt(conn) {
			conn.Close()
			return
		}
		go m.sort(conn)
	}
}

// adopt makes Close responsible for conn and for the goroutine that sorts it.
func (m *Mux) adopt(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return false
	}
	m.conns[conn] = struct{}{}
	m.wg.Add(1)
	return true
}

func (m *Mux) forget(conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.conns, conn)
}

// sort reads the first byte and hands conn on.
func (m *Mux) sort(conn net.Conn) {
	defer m.wg.Done()
	var first [1]byte
	conn.SetReadDeadline(time.Now().Add(firstByteTimeout))
	_, err := conn.Read(first[:])
	conn.SetReadDeadline(time.Time{})
	<-m.unsorted
	sorted := &sortedConn{Conn: conn, mux: m, first: first[0], unread: true}
	switch {
	case err == nil && first[0] <= lastRaftByte:
		m.raft.offer(sorted)
	case err == nil && first[0] == prefaceByte:
		m.forget(conn)
		m.grpc.offer(sorted)
	default:
		m.forget(conn)
		conn.Close()
	}
}
