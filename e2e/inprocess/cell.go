package inprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/internal/vfs"
	"strake/meta/replica"
	"strake/meta/server"
)

const (
	// patience bounds every wait.
	patience = slow * 60 * time.Second
	// lookEvery is the pause between two looks at a state that is waited for.
	lookEvery = 5 * time.Millisecond
)

// T is what Start needs of a *testing.T.
type T interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Options describe a cell; zero fields mean the defaults.
type Options struct {
	Chunkds     int   // 6
	Metas       int   // 1
	ShardLength int64 // in bytes; 4 MiB
	DiskBytes   int64 // of each chunk server; 1 TiB
	// Seed decides what survives a cut of the power.
	Seed uint64
	// Client is what Dial dials with; Addresses are filled in.
	Client client.Config
	// Direct leaves the gates out, for measurements: no server can be paused.
	Direct bool
	// Disk gives a chunk server's disk in place of memory, for measurements.
	Disk func(server int) (vfs.FS, error)
	// MetaDisk gives a metadata server's disk, likewise.
	MetaDisk func(server int) (vfs.FS, error)
	// Timing replaces the quick times of the metadata service.
	Timing server.Timing
	// SweepEvery is how often chunk servers look for leftovers and for what they miss;
	// zero: as by default.
	SweepEvery time.Duration
}

func (o Options) withDefaults() Options {
	if o.Chunkds == 0 {
		o.Chunkds = 6
	}
	if o.Metas == 0 {
		o.Metas = 1
	}
	if o.ShardLength == 0 {
		o.ShardLength = 4 << 20
	}
	if o.Timing == (server.Timing{}) {
		o.Timing = quick()
	}
	return o
}

// quick are the times of a cell whose tests are not to wait.
func quick() server.Timing {
	return server.Timing{SessionTTL: slow * 4 * time.Second, ServerSilence: slow * 3 * time.Second, ChunkCall: slow * 2 * time.Second,
		Control: 50 * time.Millisecond, RecoverAfter: 200 * time.Millisecond, PurgeAfter: time.Hour, LimpingHold: time.Second}
}

var quickRaft = replica.Timing{Heartbeat: slow * 500 * time.Millisecond, Commit: 5 * time.Millisecond, RPC: slow * 2 * time.Second, LogFile: 1 << 20}

// Cell is a running cell.
type Cell struct {
	Metas   []*Meta
	Chunkds []*Chunkd
	Address string // the metadata servers', as client.Config takes them

	t       T
	o       Options
	log     *journal
	janitor *client.Janitor
}

// Start starts a cell and waits until it is healthy. It is closed when the test
// ends, and must then close without an error.
func Start(t T, o Options) *Cell {
	t.Helper()
	c := &Cell{t: t, o: o.withDefaults(), log: &journal{}}
	err := c.start()
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Errorf("close the cell: %v", err)
		}
		if t.Failed() {
			t.Logf("what the servers said last:\n%s", c.log)
		}
	})
	if err != nil {
		t.Fatalf("start a cell: %v", err)
	}
	return c
}

func (c *Cell) start() error {
	if err := c.startMetas(); err != nil {
		return err
	}
	c.janitor = client.NewJanitor(client.Config{Addresses: c.Address, Owner: "janitor", Logger: c.logger("janitor")})
	var group errgroup.Group
	for i := range c.o.Chunkds {
		s, err := newChunkd(c, i)
		if err != nil {
			return err
		}
		c.Chunkds = append(c.Chunkds, s)
		group.Go(s.start)
	}
	return group.Wait()
}

// startMetas starts the metadata servers. One alone takes any port; several must
// know each other's before they start.
func (c *Cell) startMetas() (err error) {
	addresses := []string{"127.0.0.1:0"}
	if c.o.Metas > 1 {
		if addresses, err = freeAddresses(c.o.Metas); err != nil {
			return err
		}
	}
	for i, a := range addresses {
		m := &Meta{cell: c, address: a, peers: addresses, disk: vfs.NewMem(vfs.MemOptions{})}
		if c.o.MetaDisk != nil {
			if m.disk, err = c.o.MetaDisk(i); err != nil {
				return err
			}
		}
		c.Metas = append(c.Metas, m)
		if err := m.start(); err != nil {
			return err
		}
	}
	if c.o.Metas == 1 {
		c.Metas[0].settle()
		addresses = c.Metas[0].peers
	}
	c.Address = strings.Join(addresses, ",")
	return nil
}

// close stops everything, the metadata servers last.
func (c *Cell) close() error {
	var group errgroup.Group
	for _, s := range c.Chunkds {
		group.Go(s.stop)
	}
	err := group.Wait()
	if c.janitor != nil {
		err = errors.Join(err, c.janitor.Close())
	}
	for _, m := range c.Metas {
		group.Go(m.Stop)
	}
	return errors.Join(err, group.Wait())
}

// Dial connects to the cell. The connection is closed when the test ends, if it
// was not before.
func (c *Cell) Dial() *client.Cell {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg := c.o.Client
	cfg.Addresses = c.Address
	if cfg.Logger == nil {
		cfg.Logger = c.logger("client")
	}
	var cell *client.Cell
	c.Eventually("a client connects", func() (err error) {
		cell, err = client.Dial(ctx, cfg)
		return err
	})
	c.t.Cleanup(func() { cell.Close() })
	return cell
}

// Eventually looks until a state is reached; the last error tells what is wrong
// with it.
func (c *Cell) Eventually(what string, look func() error) {
	c.t.Helper()
	c.Within(patience, what, look)
}

// Within is Eventually with a bound of its own.
func (c *Cell) Within(bound time.Duration, what string, look func() error) {
	c.t.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		err := look()
		if err == nil {
			return
		}
		if time.Since(begun) > bound {
			c.t.Fatalf("not within %v: %s: %v", bound, what, err)
		}
	}
}

// WaitUp waits until the metadata service counts so many chunk servers as up.
func (c *Cell) WaitUp(cell *client.Cell, n int) {
	c.t.Helper()
	c.Eventually(fmt.Sprintf("%d chunk servers are up", n), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s, err := cell.Status(ctx)
		if err == nil && int(s.ServersUp) != n {
			err = fmt.Errorf("%d are", s.ServersUp)
		}
		return err
	})
}

func (c *Cell) logger(who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(c.log, nil)).With("who", who)
}
