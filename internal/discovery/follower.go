package discovery

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/naming/resolver"
	grpcresolver "google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"strake/internal/errs"
)

// renewEvery is the least time between two rounds of ResolveNow.
const renewEvery = 2 * time.Second

// Follower knows the metadata servers of a cell, by etcd's gRPC resolver. Safe
// for concurrent use.
type Follower struct {
	addr Address
	etcd handle
	stop context.CancelFunc
	done sync.WaitGroup
	kick chan struct{} // of room for one

	mu      sync.Mutex
	list    []string      // guarded by mu: sorted; the last that was not empty
	changed chan struct{} // guarded by mu: closed and made anew when list changes
	why     error         // guarded by mu: why the list is empty
}

// Follow begins to follow a cell. It returns at once. Error: InvalidArgument.
func Follow(a Address) (*Follower, error) {
	if err := a.named(); err != nil {
		return nil, err
	}
	cfg, err := config(a)
	if err != nil {
		return nil, err
	}
	f := &Follower{addr: a, etcd: handle{cfg: cfg}, kick: make(chan struct{}, 1), changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.done.Go(func() { f.run(ctx) })
	return f, nil
}

// run keeps a resolver. etcd's ends silently when its watch breaks, so another
// takes its place when ResolveNow asks.
func (f *Follower) run(ctx context.Context) {
	for wait := firstPause; ctx.Err() == nil; {
		r, err := f.resolver(ctx)
		if err != nil {
			f.fail(err)
			pause(ctx, wait)
			wait = min(2*wait, lastPause)
			continue
		}
		wait = firstPause
		if pause(ctx, renewEvery) {
			select {
			case <-ctx.Done():
			case <-f.kick:
			}
		}
		r.Close()
	}
}

// resolver starts a resolver of etcd's, which tells this Follower.
func (f *Follower) resolver(ctx context.Context) (grpcresolver.Resolver, error) {
	client, err := f.etcd.get()
	if err != nil {
		return nil, err
	}
	if err := f.look(ctx, client); err != nil {
		return nil, err
	}
	b, err := resolver.NewBuilder(client)
	if err != nil {
		return nil, failed(err, "follow the cell in etcd")
	}
	target := grpcresolver.Target{URL: url.URL{Scheme: b.Scheme(), Path: "/" + endpointsOf(f.addr.Cell)}}
	r, err := b.Build(target, sink{f: f}, grpcresolver.BuildOptions{})
	return r, failed(err, "follow the cell in etcd")
}

// look finds out whether etcd answers and knows the cell.
func (f *Follower) look(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := client.Get(ctx, endpointsOf(f.addr.Cell)+"/", clientv3.WithPrefix(), clientv3.WithLimit(maxServers))
	if err != nil {
		return failed(err, "find cell "+f.addr.Cell+" in etcd")
	}
	if len(reply.Kvs) == 0 {
		return errs.New(errs.Unavailable, "find the cell", "etcd lists no metadata server of cell %s", f.addr.Cell).
			WithHint("strake cell ls --cell %s lists the cells there are", f.addr.Of(""))
	}
	return nil
}

// sink takes what a resolver finds.
type sink struct {
	grpcresolver.ClientConn // none: the methods below are all that etcd's resolver may call
	f                       *Follower
}

// UpdateState implements resolver.ClientConn.
func (s sink) UpdateState(state grpcresolver.State) error {
	var list []string
	for _, e := range state.Endpoints {
		for _, a := range e.Addresses {
			list = append(list, a.Addr)
		}
	}
	for _, a := range state.Addresses {
		list = append(list, a.Addr)
	}
	s.f.set(list)
	return nil
}

// ReportError implements resolver.ClientConn.
func (s sink) ReportError(err error) { s.f.fail(failed(err, "follow the cell in etcd")) }

// ParseServiceConfig implements resolver.ClientConn.
func (s sink) ParseServiceConfig(string) *serviceconfig.ParseResult { return nil }

// set takes a new list. An empty one is not taken: servers that etcd lost sight
// of may well be there, and whoever has their addresses can find out.
func (f *Follower) set(list []string) {
	slices.Sort(list)
	list = slices.Compact(list)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(list) == 0 || slices.Equal(list, f.list) {
		return
	}
	f.list, f.why = list, nil
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *Follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = err
}

// Addresses gives the cell's metadata servers, sorted; waits for the first time.
// When ctx ends before, the error is Unavailable, PermissionDenied or what else
// keeps them from being known.
func (f *Follower) Addresses(ctx context.Context) ([]string, error) {
	for {
		f.mu.Lock()
		list, changed, why := f.list, f.changed, f.why
		f.mu.Unlock()
		if len(list) > 0 {
			return list, nil
		}
		if errs.KindOf(why) == errs.PermissionDenied {
			return nil, why
		}
		select {
		case <-changed:
		case <-time.After(firstPause): // why may have changed
		case <-ctx.Done():
			if why == nil {
				why = errs.New(errs.Unavailable, "find the cell", "etcd at %v does not answer", f.addr.Hosts).
					WithHint("check that etcd answers at the hosts of --cell")
			}
			return nil, why
		}
	}
}

// Known gives the last addresses that were known, without waiting: none before
// Addresses gave some.
func (f *Follower) Known() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list
}

// Remember gives it the addresses that were good before, to be tried until etcd answers.
func (f *Follower) Remember(list []string) {
	if len(f.Known()) == 0 {
		f.set(slices.Clone(list))
	}
}

// ResolveNow is called by who found none of the addresses any good: the list is
// asked for again, soon.
func (f *Follower) ResolveNow() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// Close ends it and waits for its goroutine.
func (f *Follower) Close() {
	f.stop()
	f.etcd.close() // before the wait: a resolver may be waiting for etcd
	f.done.Wait()
}
