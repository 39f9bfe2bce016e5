package transport

import (
	"net"
	"testing"
	"time"

	"strake/proto/frame"
)

// narrowLink has no room until it is opened, and notes each write.
type narrowLink struct {
	room   chan struct{} // closed when there is room
	closed chan struct{}
	writes chan int // pieces
}

func (l *narrowLink) direct() bool { return true }

func (l *narrowLink) send(step func() bool) error {
	for !step() {
		select {
		case <-l.room:
		case <-l.closed:
			return net.ErrClosed
		}
	}
	return nil
}

func (l *narrowLink) writev(pieces [][]byte) (int, error) {
	select {
	case <-l.room:
		l.writes <- len(pieces)
		return total(pieces), nil
	default:
		return 0, errAgain
	}
}

func (l *narrowLink) receive(func() bool) error {
	<-l.closed
	return net.ErrClosed
}

func (l *narrowLink) readv([][]byte) (int, error) { return 0, errAgain }

func (l *narrowLink) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func TestCallsThatWaitShareOneWrite(t *testing.T) {
	l := &narrowLink{room: make(chan struct{}), closed: make(chan struct{}), writes: make(chan int, 1000)}
	c := newConn(l, "narrow", Settings{Window: DefaultWindow, Idle: time.Hour}, &counters{})
	for range 101 {
		call := &Call{Request: frame.Request{Kind: frame.Ping}, Done: func(*Call) {}}
		if err := c.Submit(call); err != nil {
			t.Fatal(err)
		}
	}
	close(l.room)
	// The first call was alone in its batch; the hundred that came after share one.
	if first, second := <-l.writes, <-l.writes; first != 1 || second != 100 {
		t.Fatalf("%d and %d frames were written at once, want 1 and 100", first, second)
	}
	c.Close()
}

func TestCancelTakesUnsentFramesOut(t *testing.T) {
	l := &narrowLink{room: make(chan struct{}), closed: make(chan struct{}), writes: make(chan int, 1000)}
	c := newConn(l, "narrow", Settings{Window: DefaultWindow, Idle: time.Hour}, &counters{})
	var calls [3]Call
	for i := range calls {
		calls[i] = Call{Request: frame.Request{Kind: frame.Append}, Payload: [][]byte{make([]byte, 4096)}, Done: func(*Call) {}}
		if err := c.Submit(&calls[i]); err != nil {
			t.Fatal(err)
		}
	}
	c.Cancel(&calls[0]) // in the batch
	c.Cancel(&calls[1]) // in the queue
	if c.outBytes != 4096 || c.calls.Load() != 1 {
		t.Fatalf("%d bytes and %d calls are under way, want 4096 and 1", c.outBytes, c.calls.Load())
	}
	close(l.room)
	if n := <-l.writes; n != 2 {
		t.Fatalf("%d pieces were written, want a header and a payload", n)
	}
	c.Close()
}
