package transport

import (
	"context"
	"net"
	"time"

	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/frame"
)

const (
	// DefaultWindow is how many payload bytes a connection has under way in each
	// direction: 10 Gbit/s times 13 ms.
	DefaultWindow = 16 << 20
	// DefaultIdle is how long a connection without calls stays open, at least.
	DefaultIdle = 60 * time.Second
)

// Settings of a TCP transport. The zero value means the defaults.
type Settings struct {
	Window int           // payload bytes under way in each direction
	Idle   time.Duration // a connection closes after one to two times this without calls
}

// TCP is the transport over TCP. Safe for concurrent use.
type TCP struct {
	policy   tls.Policy
	settings Settings
	link     func(net.Conn) link // newLink, but for tests
	counters counters
}

// NewTCP makes a TCP transport.
func NewTCP(policy tls.Policy, s Settings) *TCP {
	if s.Window <= 0 {
		s.Window = DefaultWindow
	}
	if s.Idle <= 0 {
		s.Idle = DefaultIdle
	}
	return &TCP{policy: policy, settings: s, link: newLink}
}

// Dial connects and says hello.
func (t *TCP) Dial(ctx context.Context, addr string, hello frame.HelloBody) (Conn, error) {
	raw, err := t.policy.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := newConn(t.link(raw), addr, t.settings, &t.counters)
	if err := c.hello(ctx, hello); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Register does nothing: the kernel copies.
func (t *TCP) Register([]byte) (Region, error) { return noRegion{}, nil }

// Counters gives what all connections of this transport did so far.
func (t *TCP) Counters() Counters { return t.counters.read() }

type noRegion struct{}

func (noRegion) Close() error { return nil }

// hello is the first call of every connection.
func (c *conn) hello(ctx context.Context, body frame.HelloBody) error {
	done := make(chan struct{})
	call := &Call{Request: frame.Request{Kind: frame.Hello}, Meta: body.AppendTo(nil), Done: func(*Call) { close(done) }}
	if err := c.Submit(call); err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		c.Cancel(call)
		return errs.Wrap(ctx.Err(), "say hello to %s", c.addr)
	}
	if call.Err != nil {
		return errs.Wrap(call.Err, "say hello to %s", c.addr)
	}
	peer, err := frame.DecodeHelloReply(call.ReplyMeta)
	if err != nil {
		return errs.As(err, errs.Unavailable, "say hello to %s", c.addr)
	}
	c.peer = peer
	return nil
}
