package tls

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long a connection lives whose peer acknowledges nothing of what was sent. A
// peer that lost its address, or whose machine is gone, sends no reset; without this
// a connection to it would take the kernel a quarter of an hour to end, and whatever
// waits on it as long.
const (
	silence = 5 * time.Second
	// controlSilence is as long as one attempt of a call may take, and well below the
	// 6 s after which a session ends: a client that can call again must do so in time,
	// not find all its connections dead.
	controlSilence = 2 * time.Second
)

// probes make the kernel ask after a peer from which nothing is awaited but an answer:
// silence counts what was sent and not acknowledged, and a request may have been
// acknowledged by a machine that is gone now. The first probe leaves early enough that
// the bound on silence ends the connection with the second.
func probes(silence time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: (silence / 2).Truncate(time.Second), Interval: (silence / 2).Truncate(time.Second)}
}

// giveUp bounds the silence of a socket; what is accepted from a listening one
// inherits it.
func giveUp(silence time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence/time.Millisecond))
		})
		if err != nil {
			return err
		}
		return failed
	}
}
