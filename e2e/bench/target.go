package bench

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

// statusTimeout bounds one question to a chunk server.
const statusTimeout = 5 * time.Second

// target is the cell that is measured: a throwaway one of its own processes, or
// one that was there before. close it.
type target struct {
	address string
	dir     string           // of a throwaway cell
	own     *cluster.Cluster // nil when the cell was there before
	cell    *client.Cell
	control *dial.Pool
	servers []client.ServerInfo
	meter   meter // servers alone
	counted int   // servers in meter
	stopped *cluster.Process
}

// newTarget starts a throwaway cell, or connects to the one that is given.
func newTarget(ctx context.Context, o Options) (*target, error) {
	t := &target{address: o.Cell, control: dial.NewPool(tls.Policy{})}
	if err := t.open(ctx, o); err != nil {
		_ = t.close() // what began already; the first error tells more
		return nil, err
	}
	return t, nil
}

func (t *target) open(ctx context.Context, o Options) (err error) {
	if t.address == "" {
		if err := t.start(ctx, o); err != nil {
			return err
		}
	}
	if t.cell, err = client.Dial(ctx, client.Config{Addresses: t.address}); err != nil {
		return err
	}
	return t.look(ctx)
}

// start starts a throwaway cell.
func (t *target) start(ctx context.Context, o Options) (err error) {
	if t.dir, err = os.MkdirTemp(o.Dir, "strake-bench-"); err != nil {
		return errs.As(err, errs.Unavailable, "make a directory for the cell")
	}
	options := cluster.Options{Binary: o.Binary, Dir: t.dir, Chunkds: o.Chunkds, Meta: o.Metas}
	if o.Emulate != "" {
		options.ChunkdArgs = []string{"--emulate-device", o.Emulate}
	}
	if o.FIFO {
		options.ChunkdArgs = append(options.ChunkdArgs, "--qos=off")
	}
	if t.own, err = cluster.Start(ctx, options); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return errs.As(err, errs.Unavailable, "start a throwaway cell")
	}
	t.address = t.own.Cell
	return nil
}

// look finds the cell's servers and their processes.
func (t *target) look(ctx context.Context) error {
	status, err := t.cell.Status(ctx)
	if err != nil {
		return err
	}
	if t.servers, err = t.cell.Servers(ctx); err != nil {
		return err
	}
	var data, members []string
	for _, s := range t.servers {
		data = append(data, s.Address)
	}
	for _, m := range status.Members {
		members = append(members, m.Address)
	}
	found := listeners(slices.Concat(data, members))
	t.counted, t.meter = 0, meter{pids: map[string][]int{}}
	t.account(roleChunkd, data, found)
	t.account(roleMeta, members, found)
	return nil
}

// account puts the processes at addresses under a role. One process that is
// several servers counts once.
func (t *target) account(role string, addresses []string, found map[string]int) {
	for _, a := range addresses {
		pid, ok := found[a]
		if !ok {
			continue
		}
		t.counted++
		if !slices.Contains(t.meter.pids[roleChunkd], pid) && !slices.Contains(t.meter.pids[roleMeta], pid) {
			t.meter.pids[role] = append(t.meter.pids[role], pid)
		}
	}
}

// with gives the meter of the servers and of so many clients.
func (t *target) with(clients []int) meter {
	return meter{pids: map[string][]int{roleClient: clients, roleChunkd: t.meter.pids[roleChunkd], roleMeta: t.meter.pids[roleMeta]}}
}

// stopOne kills one chunk server and waits until the cell knows.
func (t *target) stopOne(ctx context.Context) error {
	if err := t.kill(); err != nil {
		return err
	}
	err := t.own.WaitStatus(ctx, "without one server", func(s client.CellStatus) bool { return s.ServersDown == 1 })
	if err != nil {
		return err
	}
	return t.look(ctx)
}

// kill kills one chunk server.
func (t *target) kill() error {
	t.stopped = t.own.Chunkds[0]
	return errs.As(t.stopped.Kill(), errs.Unavailable, "stop a chunk server")
}

// restart starts the stopped server again and waits until the cell knows.
func (t *target) restart(ctx context.Context) error {
	if err := t.stopped.Restart(); err != nil {
		return errs.As(err, errs.Unavailable, "start the chunk server again")
	}
	return t.complete(ctx)
}

// slow has one chunk server's device take so much longer for each request.
func (t *target) slow(ctx context.Context, latency time.Duration) error {
	t.stopped = t.own.Chunkds[0]
	if err := t.stopped.Stop(); err != nil {
		return errs.As(err, errs.Unavailable, "stop a chunk server")
	}
	if err := t.stopped.Restart("--emulate-device", "latency="+latency.String()); err != nil {
		return errs.As(err, errs.Unavailable, "start the chunk server with a slow device")
	}
	return t.complete(ctx)
}

// sound undoes slow.
func (t *target) sound(ctx context.Context) error {
	if err := t.stopped.Kill(); err != nil { // an orderly end takes as long as its device
		return errs.As(err, errs.Unavailable, "stop the slow chunk server")
	}
	return t.restart(ctx)
}

// complete waits until the cell says that all its servers are up.
func (t *target) complete(ctx context.Context) error {
	err := t.own.WaitStatus(ctx, "complete", func(s client.CellStatus) bool { return s.ServersDown == 0 })
	if err != nil {
		return err
	}
	return t.look(ctx)
}

// served is what all chunk servers have counted so far.
type served struct{ written, read, allocations, calls, copied uint64 }

// served adds up what the chunk servers counted, in bytes at their devices and in
// memory, allocations and system calls; a server that does not answer counts for
// nothing.
func (t *target) served(ctx context.Context) (sum served) {
	for _, s := range t.servers {
		if s.State != "up" {
			continue
		}
		conn, err := t.control.Get(s.Control)
		if err != nil {
			continue
		}
		one, cancel := context.WithTimeout(ctx, statusTimeout)
		reply, err := pb.NewChunkClient(conn).ChunkStatus(one, &pb.ChunkStatusRequest{})
		cancel()
		if err != nil {
			continue
		}
		for _, d := range reply.Devices {
			sum.written, sum.read = sum.written+d.BytesWritten, sum.read+d.BytesRead
		}
		sum.allocations, sum.calls, sum.copied = sum.allocations+reply.Allocations, sum.calls+reply.DataCalls, sum.copied+reply.CopiedBytes
	}
	return sum
}

// devices gives what the devices have written and read so far, in bytes.
func (t *target) devices(ctx context.Context) (written, read uint64) {
	s := t.served(ctx)
	return s.written, s.read
}

// close ends what was started and removes its data.
func (t *target) close() error {
	var bad []error
	if t.cell != nil {
		bad = append(bad, t.cell.Close())
	}
	t.control.Close()
	if t.own != nil {
		bad = append(bad, t.own.Close())
	}
	if t.dir != "" {
		bad = append(bad, os.RemoveAll(t.dir))
	}
	return errors.Join(bad...)
}
