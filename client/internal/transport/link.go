package transport

import (
	"errors"
	"net"
	"syscall"
)

// errAgain: the socket has no room, or no bytes, at the moment.
var errAgain = errors.New("would block")

// link is a byte stream whose transfers never block while they hold a caller's
// buffer: send and receive do the waiting, outside of every lock, and run a
// step when there may be something to do. That is what lets Cancel take buffers
// back at once. One goroutine sends and one receives at a time.
type link interface {
	// send runs step until it returns true; after false it waits for room.
	send(step func() bool) error
	// writev writes what there is room for, inside a step; errAgain for none.
	writev(pieces [][]byte) (int, error)
	// direct tells whether send returns without waiting when step's first run
	// returns true.
	direct() bool
	// receive runs step until it returns true; after false it waits for bytes.
	receive(step func() bool) error
	// readv reads what is there, inside a step; errAgain for nothing, io.EOF at
	// the end.
	readv(pieces [][]byte) (int, error)
	// Close ends both directions and wakes whoever waits.
	Close() error
}

// newLink takes the direct way for sockets; other streams (TLS) go through
// buffers.
func newLink(c net.Conn) link {
	if s, ok := c.(syscall.Conn); ok {
		if l, err := newSocket(c, s); err == nil {
			return l
		}
	}
	return &stream{conn: c}
}

// streamBuffer is how much a stream moves at once, in bytes.
const streamBuffer = 64 << 10

// stream is a link over any net.Conn. It waits in blocking calls on its own
// buffers and copies between these and the caller's.
type stream struct {
	conn     net.Conn
	out      []byte // written by send
	in       []byte // read by receive; in[at:] is unread
	at       int
	inBuffer []byte
}

func (s *stream) direct() bool { return false }

// send empties the buffer after each step but the last, which left nothing in
// it: from then on another goroutine may send.
func (s *stream) send(step func() bool) error {
	for !step() {
		if _, err := s.conn.Write(s.out); err != nil {
			return err
		}
		s.out = s.out[:0]
	}
	return nil
}

func (s *stream) writev(pieces [][]byte) (int, error) {
	before := len(s.out)
	for _, p := range pieces {
		p = p[:min(len(p), streamBuffer-len(s.out))]
		s.out = append(s.out, p...)
	}
	if len(s.out) == before {
		return 0, errAgain
	}
	return len(s.out) - before, nil
}

func (s *stream) receive(step func() bool) error {
	if s.inBuffer == nil {
		s.inBuffer = make([]byte, streamBuffer)
	}
	for !step() {
		n, err := s.conn.Read(s.inBuffer)
		if n == 0 && err != nil {
			return err
		}
		s.in, s.at = s.inBuffer[:n], 0
	}
	return nil
}

func (s *stream) readv(pieces [][]byte) (n int, err error) {
	for _, p := range pieces {
		m := copy(p, s.in[s.at:])
		s.at += m
		n += m
	}
	if n == 0 {
		return 0, errAgain
	}
	return n, nil
}

func (s *stream) Close() error { return s.conn.Close() }
