package mux

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *Mux {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := New(l)
	t.Cleanup(func() { m.Close() })
	return m
}

func dial(t *testing.T, m *Mux, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", m.below.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheFirstByteDecides(t *testing.T) {
	m := start(t)
	for text, l := range map[string]net.Listener{"\x00abc": m.Raft(), "\x04abc": m.Raft(), "PRI * HTTP/2.0": m.GRPC()} {
		dial(t, m, text)
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
		c.Close()
	}
}

func TestAnyOtherByteIsClosed(t *testing.T) {
	m := start(t)
	c := dial(t, m, "GET / HTTP/1.1")
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("read %d, %v", n, err)
	}
}

func TestCloseEndsSilentAndRaftConnections(t *testing.T) {
	m := start(t)
	silent := dial(t, m, "")
	raft := dial(t, m, "\x00")
	if _, err := m.Raft().Accept(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := m.GRPC().Accept()
		waiting <- err
	}()
	m.Close()
	for _, c := range []net.Conn{silent, raft} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("still open")
		}
	}
	if err := <-waiting; err == nil {
		t.Error("Accept gave a connection")
	}
}

func TestOneHalfClosesAlone(t *testing.T) {
	m := start(t)
	m.Raft().Close()
	dial(t, m, "P")
	if _, err := m.GRPC().Accept(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, m, "\x00")
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("a raft connection stays open without a listener")
	}
}
