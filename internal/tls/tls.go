package tls

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"strake/internal/errs"
)

// InsecureFlag is the command-line flag that lifts the loopback rule.
const InsecureFlag = "insecure-anyone-can-read-and-destroy-data"

// Policy says how links are secured. The zero value listens on loopback only.
type Policy struct {
	// Insecure lets listeners leave loopback without any security.
	Insecure bool
}

// Listen opens a TCP listener. Errors: PermissionDenied for an address beyond
// loopback, Busy for a port in use, InvalidArgument for one that can't be parsed.
func (p Policy) Listen(ctx context.Context, addr string) (net.Listener, error) {
	if err := p.allow(ctx, addr); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: giveUp(silence)}).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errs.New(errs.Busy, "listen on "+addr, "the port is in use").
			WithHint("stop the process that holds it, or choose another address")
	case err != nil:
		return nil, errs.As(err, errs.InvalidArgument, "listen on %s", addr)
	}
	return l, nil
}

// allow refuses addresses beyond loopback unless the policy is insecure.
func (p Policy) allow(ctx context.Context, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errs.As(err, errs.InvalidArgument, "listen on %q", addr)
	}
	if p.Insecure {
		return nil
	}
	refused := errs.New(errs.PermissionDenied, "listen on "+addr, "the address is not on loopback and the link has no security").
		WithHint("listen on 127.0.0.1, or pass --%s", InsecureFlag)
	if host == "" {
		return refused
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return errs.As(err, errs.InvalidArgument, "listen on %s", addr)
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return refused
		}
	}
	return nil
}

// Dial connects over TCP. It looks the name up by itself: Go's shared lookups go on
// when who asked first has given up, so that one which hangs on a name that is not
// there yet (a container's, for 10 s) would hold up all who ask meanwhile. Errors: Unavailable when the peer refuses or can't be
// reached, Deadline or Canceled when ctx ends first; the text names the address.
func (p Policy) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return p.dial(ctx, addr, silence)
}

// DialControl is Dial for the control plane, whose calls are short and repeated: it
// gives up sooner on a peer that acknowledges nothing.
func (p Policy) DialControl(ctx context.Context, addr string) (net.Conn, error) {
	return p.dial(ctx, addr, controlSilence)
}

func (Policy) dial(ctx context.Context, addr string, silence time.Duration) (net.Conn, error) {
	c, err := (&net.Dialer{Control: giveUp(silence), KeepAliveConfig: probes(silence), Resolver: &net.Resolver{}}).DialContext(ctx, "tcp", addr)
	if err == nil {
		return c, nil
	}
	if kind := errs.KindOf(ctx.Err()); kind != errs.OK {
		return nil, errs.As(err, kind, "connect to %s", addr)
	}
	return nil, errs.As(err, errs.Unavailable, "connect to %s", addr)
}

// ServerOptions are the gRPC server's credentials.
func (p Policy) ServerOptions() []grpc.ServerOption { return nil }

// DialOptions are the gRPC client's credentials. It connects directly, as Dial
// does: a proxy that the environment names is for the web.
func (p Policy) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy()}
}
