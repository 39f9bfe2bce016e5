package tls

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// option reads a number that a connection's socket is set to.
func option(t *testing.T, c net.Conn, name int) (n int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A peer that vanished, its address with it, must not hold a connection for the
// quarter of an hour that the kernel would give it: either end gives up.
func TestBothEndsGiveUpOnASilentPeer(t *testing.T) {
	l, err := Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for plane, dial := range map[time.Duration]func(context.Context, string) (net.Conn, error){
		silence: Policy{}.Dial, controlSilence: Policy{}.DialControl} {
		near, err := dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		if got := option(t, near, unix.TCP_USER_TIMEOUT); got != int(plane.Milliseconds()) {
			t.Errorf("who dialled waits %d ms, want %v", got, plane)
		}
		// The kernel looks at the bound when a probe is due.
		if got := time.Duration(option(t, near, unix.TCP_KEEPIDLE)+option(t, near, unix.TCP_KEEPINTVL)) * time.Second; got > plane {
			t.Errorf("who waits for an answer is told after %v that the peer is gone, want %v", got, plane)
		}
		if got := option(t, far, unix.TCP_USER_TIMEOUT); got != int(silence.Milliseconds()) {
			t.Errorf("who accepted waits %d ms, want %v", got, silence)
		}
	}
}
