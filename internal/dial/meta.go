package dial

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"strake/internal/discovery"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

const (
	// attemptTimeout bounds one try at one server, so that a hung one does not
	// hold up the others. Calls that wait on purpose pass their own.
	attemptTimeout = 2 * time.Second
	// retryPause is the wait after all servers were tried in vain.
	retryPause = 100 * time.Millisecond
	// maxReasons bounds the addresses that an error names.
	maxReasons = 9
)

var connectParams = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: time.Second,
}

// Meta calls the metadata leader. Safe for concurrent use.
type Meta struct {
	pool     *Pool
	static   []string            // the addresses as given, or
	follower *discovery.Follower // who knows them

	mu      sync.Mutex
	leader  string  // guarded by mu: where the last call succeeded; empty at first
	trouble Trouble // guarded by mu: of the attempts since the last success
}

// NewMeta makes a Meta for a cell: its addresses, comma-separated, or an etcd URL
// (see discovery.Address). It does not wait for a connection. Error: InvalidArgument.
func NewMeta(addresses string, policy tls.Policy) (*Meta, error) {
	if discovery.IsURL(addresses) {
		return followed(addresses, policy)
	}
	var list []string
	for _, a := range strings.Split(addresses, ",") {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, errs.New(errs.InvalidArgument, "find the cell", "%q is no HOST:PORT", a).
				WithHint("give --cell HOST:PORT[,HOST:PORT...]")
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		return nil, errs.New(errs.InvalidArgument, "find the cell", "no metadata address in %q", addresses).
			WithHint("give --cell HOST:PORT[,HOST:PORT...]")
	}
	return &Meta{pool: NewPool(policy), static: list}, nil
}

// followed makes a Meta whose addresses etcd knows.
func followed(url string, policy tls.Policy) (*Meta, error) {
	a, err := discovery.Parse(url)
	if err != nil {
		return nil, err
	}
	f, err := discovery.Follow(a)
	if err != nil {
		return nil, err
	}
	return &Meta{pool: NewPool(policy), follower: f}, nil
}

// Addresses are the cell's addresses: as given, or as etcd has them now. Only the
// first answer of etcd is waited for, until ctx ends.
func (m *Meta) Addresses(ctx context.Context) ([]string, error) {
	if m.follower != nil {
		return m.follower.Addresses(ctx)
	}
	return m.static, nil
}

// Known gives the addresses that etcd told last; none where they were given.
func (m *Meta) Known() []string {
	if m.follower == nil {
		return nil
	}
	return m.follower.Known()
}

// Remember gives it addresses that etcd told before, for as long as etcd does not answer.
func (m *Meta) Remember(list []string) {
	if m.follower != nil {
		m.follower.Remember(list)
	}
}

// Pool is the pool that Meta's connections live in; callers may share it.
func (m *Meta) Pool() *Pool { return m.pool }

// Close closes all connections.
func (m *Meta) Close() {
	if m.follower != nil {
		m.follower.Close()
	}
	m.pool.Close()
}

// Do runs call against the leader. It follows not-leader answers and retries
// Unavailable, and servers that don't answer in time, until ctx ends; every other
// error comes back at once, typed. When ctx's deadline passes first, the error is
// Unavailable and names the addresses tried and the reasons.
func (m *Meta) Do(ctx context.Context, call func(context.Context, pb.MetaClient) error) error {
	return m.DoWithin(ctx, attemptTimeout, call)
}

// DoWithin is Do with another bound for one attempt.
func (m *Meta) DoWithin(ctx context.Context, attempt time.Duration, call func(context.Context, pb.MetaClient) error) error {
	tried, asked := reasons{}, time.Now()
	addresses, err := m.Addresses(ctx)
	if err != nil {
		tried.note("etcd", err)
		m.failed(asked, tried)
		return err
	}
	addr := m.first(addresses)
	for tries := 0; ; tries++ {
		begun := time.Now()
		err := m.try(ctx, attempt, addr, call)
		kind := errs.KindOf(err)
		switch {
		case kind == errs.OK:
			m.succeeded(addr)
			return nil
		case kind == errs.Deadline && !errors.Is(ctx.Err(), context.Canceled):
			m.hung(addr, after(addresses, addr))
			err = errs.New(errs.Unavailable, "", "no answer within %v", time.Since(begun).Round(100*time.Millisecond))
		case kind != errs.NotLeader && kind != errs.Unavailable:
			return err
		}
		if ctx.Err() == nil || !tried.has(addr) { // else this try was cut short, and an earlier one says more
			tried.note(addr, err)
		}
		m.failed(begun, tried)
		addresses = m.again(addresses, tries)
		next := leaderOf(err)
		if next == "" || next == addr {
			next = after(addresses, addr)
		}
		if ctx.Err() != nil || !pause(ctx, tries, len(addresses)) {
			return errs.New(errs.Unavailable, "", "metadata service at %s", tried).
				WithHint("check that a metadata server listens there, or name another: --cell HOST:PORT[,HOST:PORT...]")
		}
		addr = next
	}
}

func (m *Meta) try(ctx context.Context, attempt time.Duration, addr string, call func(context.Context, pb.MetaClient) error) error {
	conn, err := m.pool.Get(addr)
	if err != nil {
		return err
	}
	attemptCtx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return pb.FromStatus(call(attemptCtx, pb.NewMetaClient(conn)))
}

// first is where a call begins: where the last one succeeded.
func (m *Meta) first(addresses []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader == "" {
		m.leader = addresses[0]
	}
	return m.leader
}

// again gives the addresses for the next try. After a whole round in vain etcd is
// asked anew.
func (m *Meta) again(addresses []string, tries int) []string {
	if m.follower == nil {
		return addresses
	}
	if roundEnds(tries, len(addresses)) {
		m.follower.ResolveNow()
	}
	return m.follower.Known()
}

func (m *Meta) succeeded(addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader, m.trouble = addr, Trouble{}
}

// hung makes the next call begin elsewhere: at a server that took the whole time
// of one call in vain it would lose as much again.
func (m *Meta) hung(addr, next string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader == addr {
		m.leader = next
	}
}

// failed notes an attempt that failed.
func (m *Meta) failed(begun time.Time, tried reasons) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble.Since.IsZero() {
		m.trouble.Since = begun
	}
	m.trouble.Reason = "metadata service at " + tried.String()
}

// Trouble is why no call succeeds.
type Trouble struct {
	Since  time.Time // when the first attempt began that failed
	Reason string    // the addresses tried and what came of it
}

// Trouble tells why no call has succeeded since when; ok is false while the last
// one did.
func (m *Meta) Trouble() (t Trouble, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble, !m.trouble.Since.IsZero()
}

// reasons are the last error of each address that one call tried, in order.
type reasons struct {
	list []reason
}

type reason struct {
	addr string
	text string
}

// note records an address's last error.
func (r *reasons) note(addr string, err error) {
	text := err.Error()
	for i := range r.list {
		if r.list[i].addr == addr {
			r.list[i].text = text
			return
		}
	}
	if len(r.list) < maxReasons {
		r.list = append(r.list, reason{addr, text})
	}
}

func (r reasons) has(addr string) bool {
	return slices.ContainsFunc(r.list, func(one reason) bool { return one.addr == addr })
}

func (r reasons) String() string {
	var parts []string
	for _, one := range r.list {
		parts = append(parts, one.addr+": "+one.text)
	}
	return strings.Join(parts, "; ")
}

// after is the address to try when addr was no help.
func after(addresses []string, addr string) string {
	for i, a := range addresses {
		if a == addr {
			return addresses[(i+1)%len(addresses)]
		}
	}
	return addresses[0]
}

// roundEnds tells whether all addresses were tried since the last pause.
func roundEnds(tries, round int) bool { return (tries+1)%max(round, 2) == 0 }

// pause waits after each full round; it reports false when ctx ended.
func pause(ctx context.Context, tries, round int) bool {
	if !roundEnds(tries, round) {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryPause):
		return true
	}
}

func leaderOf(err error) string {
	var e *errs.Error
	if errors.As(err, &e) {
		return e.Leader
	}
	return ""
}
