package dial

import (
	"sync"

	"google.golang.org/grpc"

	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

// maxMessage bounds one gRPC message, in bytes.
const maxMessage = 64 << 20

// Pool is a set of gRPC connections by address. Safe for concurrent use.
type Pool struct {
	policy tls.Policy

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn // guarded by mu
	closed bool                        // guarded by mu
}

// NewPool makes an empty pool.
func NewPool(policy tls.Policy) *Pool {
	return &Pool{policy: policy, conns: map[string]*grpc.ClientConn{}}
}

// Get gives the connection to an address; it connects on first use, in the
// background. Errors: InvalidArgument, Closed.
func (p *Pool) Get(addr string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errs.New(errs.Closed, "connect to "+addr, "the pool is closed")
	}
	if c, ok := p.conns[addr]; ok {
		return c, nil
	}
	options := append(append(p.policy.DialOptions(), pb.CallOptions()...),
		grpc.WithConnectParams(connectParams),
		grpc.WithContextDialer(p.policy.DialControl), // resolves the name anew, and gives up on a silent peer
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	c, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, errs.As(err, errs.InvalidArgument, "connect to %s", addr)
	}
	p.conns[addr] = c
	return c, nil
}

// Close closes every connection.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
