package tls

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// userTimeout reads a connection's bound, in milliseconds.
func userTimeout(t *testing.T, c net.Conn) (ms int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) })
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// A peer that vanished, its address with it, must not hold a connection for the
// quarter of an hour that the kernel would give it: either end gives up.
func TestBothEndsGiveUpOnASilentPeer(t *testing.T) {
	l, err := Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := Policy{}.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	for end, c := range map[string]net.Conn{"who dialled": near, "who accepted": far} {
		if got := userTimeout(t, c); got != int(silence.Milliseconds()) {
			t.Errorf("%s waits %d ms", end, got)
		}
	}
}
