package tls

import (
	"context"
	"net"
	"testing"
	"time"

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
		if got := userTimeout(t, near); got != int(plane.Milliseconds()) {
			t.Errorf("who dialled waits %d ms, want %v", got, plane)
		}
		if got := userTimeout(t, far); got != int(silence.Milliseconds()) {
			t.Errorf("who accepted waits %d ms, want %v", got, silence)
		}
	}
}
