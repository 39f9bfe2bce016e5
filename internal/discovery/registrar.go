package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/naming/endpoints"

	"strake/internal/errs"
)

const (
	// leaseSeconds is how long a server stays listed that died.
	leaseSeconds = 10
	// foundersPause is the wait between two looks at who is there.
	foundersPause = 300 * time.Millisecond
	// maxServers bounds what is read of one cell's servers.
	maxServers = 64
)

// Registrar lists one metadata server in etcd while it runs.
type Registrar struct {
	etcd handle
	cell string
	self string
	log  *slog.Logger

	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	lease clientv3.LeaseID // guarded by mu: the one it is listed under, 0 when it is not
	id    uint64           // guarded by mu: the cell's id, 0 as long as it is not known
	known chan struct{}    // closed when id is known
}

// Register lists the server that advertises self. It returns at once and goes on
// trying until Close. Error: InvalidArgument.
func Register(a Address, self string, log *slog.Logger) (*Registrar, error) {
	if err := a.named(); err != nil {
		return nil, err
	}
	cfg, err := config(a)
	if err != nil {
		return nil, err
	}
	r := &Registrar{etcd: handle{cfg: cfg}, cell: a.Cell, self: self, log: log, known: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.done.Go(func() { r.run(ctx) })
	return r, nil
}

// run lists the server, again and again.
func (r *Registrar) run(ctx context.Context) {
	silent := false
	for wait := firstPause; ctx.Err() == nil; wait = min(2*wait, lastPause) {
		err := r.list(ctx, func() {
			wait, silent = firstPause, false
			r.log.Info("listed in etcd", "cell", r.cell, "peer", r.self)
		})
		if ctx.Err() != nil {
			return
		}
		if !silent {
			r.log.Warn("not listed in etcd, trying again; the cell goes on without", "cell", r.cell, "err", err)
			silent = true
		}
		pause(ctx, wait)
	}
}

// list lists the server and keeps its lease until that is lost; listed is called
// when it stands.
func (r *Registrar) list(ctx context.Context, listed func()) error {
	client, err := r.etcd.get()
	if err != nil {
		return err
	}
	claimed, err := r.claim(ctx, client)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	grant, err := client.Grant(call, leaseSeconds)
	if err != nil {
		return failed(err, "take a lease in etcd")
	}
	manager, err := endpoints.NewManager(client, endpointsOf(r.cell))
	if err != nil {
		return failed(err, "list in etcd")
	}
	key := endpointsOf(r.cell) + "/" + r.self
	if err := manager.AddEndpoint(call, key, endpoints.Endpoint{Addr: r.self}, clientv3.WithLease(grant.ID)); err != nil {
		return failed(err, "list in etcd")
	}
	r.setLease(grant.ID)
	listed()
	return r.keep(ctx, client, grant.ID, claimed)
}

// keep renews the lease until it is lost or ctx ends. When the cell's id becomes
// known meanwhile, the name is claimed for it.
func (r *Registrar) keep(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID, claimed bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive, err := client.KeepAlive(ctx, lease)
	if err != nil {
		return failed(err, "renew the lease in etcd")
	}
	known := r.known
	if claimed {
		known = nil
	}
	for {
		select {
		case _, ok := <-alive:
			if !ok {
				return errs.New(errs.Unavailable, "renew the lease in etcd", "etcd does not answer, or the lease is gone")
			}
		case <-known:
			if _, err := r.claim(ctx, client); err != nil {
				return err
			}
			known = nil
		}
	}
}

// claim writes the cell's id under its name, once it is known. A name that
// belongs to another cell is refused with WrongCell.
func (r *Registrar) claim(ctx context.Context, client *clientv3.Client) (claimed bool, err error) {
	id := r.cellID()
	if id == 0 {
		return false, nil
	}
	key, mine := idOf(r.cell), formatID(id)
	taken, err := once(ctx, client, key, mine)
	if err != nil {
		return false, failed(err, "write the cell's id into etcd")
	}
	if taken != mine {
		r.unlist(ctx, client)
		return false, errs.New(errs.WrongCell, "list in etcd", "the name %s belongs to cell %s, this server is of cell %s", r.cell, taken, mine).
			WithHint("name this cell otherwise, or take the key %s out of etcd if that cell is gone", key)
	}
	return true, nil
}

// once writes a key unless it is there, and gives what it holds then.
func once(ctx context.Context, client *clientv3.Client, key, value string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
	if err != nil || reply.Succeeded {
		return value, err
	}
	return string(reply.Responses[0].GetResponseRange().Kvs[0].Value), nil
}

// Founders gives the servers that form the cell, sorted: n of those that were
// listed first, this one not necessarily among them. It waits until so many are
// there, or ctx ends; waiting is told why. Error: Canceled.
func (r *Registrar) Founders(ctx context.Context, n int, waiting func(why string)) ([]string, error) {
	for {
		list, err := r.founders(ctx, n)
		switch {
		case err != nil:
			waiting("etcd: " + err.Error())
		case len(list) > 0:
			return list, nil
		default:
			waiting(fmt.Sprintf("etcd does not list %d metadata servers of cell %s yet", n, r.cell))
		}
		if !pause(ctx, foundersPause) {
			return nil, errs.As(ctx.Err(), errs.Canceled, "wait for the cell's founders")
		}
	}
}

// founders looks once; an empty list means not enough servers.
func (r *Registrar) founders(ctx context.Context, n int) ([]string, error) {
	client, err := r.etcd.get()
	if err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	dir := endpointsOf(r.cell) + "/"
	reply, err := client.Txn(call).Then(clientv3.OpGet(foundersOf(r.cell)),
		clientv3.OpGet(dir, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(maxServers))).Commit()
	if err != nil {
		return nil, failed(err, "read the cell's founders")
	}
	if kvs := reply.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return strings.Split(string(kvs[0].Value), ","), nil
	}
	var there []string
	for _, kv := range reply.Responses[1].GetResponseRange().Kvs {
		there = append(there, strings.TrimPrefix(string(kv.Key), dir))
	}
	if len(there) < n || !slices.Contains(there, r.self) {
		return nil, nil
	}
	there = there[:n]
	slices.Sort(there)
	taken, err := once(ctx, client, foundersOf(r.cell), strings.Join(there, ","))
	if err != nil {
		return nil, failed(err, "write the cell's founders")
	}
	return strings.Split(taken, ","), nil
}

// SetCell tells the id of the cell that the server is a member of; the first
// call counts.
func (r *Registrar) SetCell(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id == 0 && id != 0 {
		r.id = id
		close(r.known)
	}
}

func (r *Registrar) cellID() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

func (r *Registrar) setLease(id clientv3.LeaseID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease = id
}

// unlist gives the lease back, and the entry with it.
func (r *Registrar) unlist(ctx context.Context, client *clientv3.Client) {
	r.mu.Lock()
	lease := r.lease
	r.lease = 0
	r.mu.Unlock()
	if lease == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, _ = client.Revoke(ctx, lease) // else it runs out
}

// Close takes the server off the list and waits for the goroutine. A second Close
// does nothing.
func (r *Registrar) Close() {
	r.stop()
	r.done.Wait()
	if client, err := r.etcd.get(); err == nil {
		r.unlist(context.Background(), client)
	}
	r.etcd.close()
}
