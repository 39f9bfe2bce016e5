package discovery

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"strake/internal/errs"
)

const (
	// callTimeout bounds one call to etcd.
	callTimeout = 3 * time.Second
	// connectTimeout bounds the lookup of etcd's name and the TCP connection to it.
	connectTimeout = time.Second
	// firstPause and lastPause are the waits after failures; each is twice the one
	// before. The longest is short because servers and etcd may start together.
	firstPause = 200 * time.Millisecond
	lastPause  = time.Second

	prefix = "/strake/cells/"
)

// reconnect is how a lost etcd is dialled again. gRPC's own bounds would leave two
// minutes between the later attempts, and a second between the first.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: firstPause / 2, Multiplier: 1.6, Jitter: 0.2, MaxDelay: lastPause},
	MinConnectTimeout: callTimeout,
}

// dial connects to etcd over TCP. A lookup that hangs (of a container's name that is
// not there yet, for 10 s) is given up soon, and none is shared with it.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return (&net.Dialer{Resolver: &net.Resolver{}}).DialContext(ctx, "tcp", addr)
}

// The keys of a cell.
func endpointsOf(cell string) string { return prefix + cell + "/meta" }
func foundersOf(cell string) string  { return prefix + cell + "/founders" }
func idOf(cell string) string        { return prefix + cell + "/id" }

// config is how a client of etcd is made. Error: InvalidArgument, for files that
// can't be read.
func config(a Address) (cfg clientv3.Config, err error) {
	password, err := a.password()
	if err != nil {
		return cfg, err
	}
	cfg = clientv3.Config{
		Username: a.User, Password: password, Logger: zap.NewNop(), DialTimeout: callTimeout,
		DialKeepAliveTime: 2 * callTimeout, DialKeepAliveTimeout: callTimeout,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(reconnect), grpc.WithContextDialer(dial), grpc.WithNoProxy()},
	}
	web := "http://"
	if a.CA != "" || a.Cert != "" {
		web = "https://"
		info := transport.TLSInfo{TrustedCAFile: a.CA, CertFile: a.Cert, KeyFile: a.Key}
		if cfg.TLS, err = info.ClientConfig(); err != nil {
			return cfg, errs.As(err, errs.InvalidArgument, "read etcd's certificates")
		}
	}
	for _, h := range a.Hosts {
		cfg.Endpoints = append(cfg.Endpoints, web+h)
	}
	return cfg, nil
}

// open makes a client. Where there is a password it is shown at once, for which
// etcd must answer within callTimeout; else the client connects when it is used.
func open(cfg clientv3.Config) (*clientv3.Client, error) {
	c, err := clientv3.New(cfg)
	return c, failed(err, "connect to etcd")
}

// handle opens a client when it is wanted first. Safe for concurrent use.
type handle struct {
	cfg clientv3.Config

	mu     sync.Mutex       // held while a client is opened, so that there is one
	client *clientv3.Client // guarded by mu
	closed bool             // guarded by mu
}

func (h *handle) get() (*clientv3.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errs.New(errs.Canceled, "connect to etcd", "it was closed meanwhile")
	}
	if h.client != nil {
		return h.client, nil
	}
	c, err := open(h.cfg)
	if err == nil {
		h.client = c
	}
	return c, err
}

// close ends the client and whatever waits for it.
func (h *handle) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.client != nil {
		h.client.Close()
	}
}

// failed gives an error of etcd its kind: Unavailable but for refusals.
func failed(err error, op string) error {
	if err == nil {
		return nil
	}
	var typed *errs.Error
	switch {
	case errors.As(err, &typed):
		return errs.Wrap(err, "%s", op)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrPermissionDenied),
		errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrInvalidAuthToken):
		return errs.As(err, errs.PermissionDenied, "%s", op).(*errs.Error).
			WithHint("give user=NAME&password-file=FILE of an etcd user who may read and write %s", prefix)
	case errors.Is(err, context.Canceled):
		return errs.As(err, errs.Canceled, "%s", op)
	}
	return errs.As(err, errs.Unavailable, "%s", op).(*errs.Error).WithHint("check that etcd answers at the hosts of --cell")
}

// pause waits; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
