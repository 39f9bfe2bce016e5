package client

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"strake/client/internal/transport"
	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/pb"
)

const (
	// dialTimeout bounds the first contact with a cell.
	dialTimeout = 5 * time.Second
	// DefaultMemoryCap is the default of Config.MemoryCap, in bytes.
	DefaultMemoryCap = 256 << 20
)

// Config says which cell to use and how. The zero value of each field but
// Addresses is a sensible default.
type Config struct {
	// Addresses are the metadata servers, `HOST:PORT[,HOST:PORT...]`.
	Addresses string
	// Owner names this client to people; default: program, host and pid.
	Owner string
	// MemoryCap bounds the payload that one volume keeps until it is flushed, in
	// bytes; WriteAt blocks at the cap. Default 256 MiB, at least 64 MiB.
	MemoryCap int64
	// MapCap bounds the loaded pages of one volume's extent map, in bytes.
	// Default 256 MiB.
	MapCap int64
	// Logger gets what an operator would look back for. Default: discards.
	Logger *slog.Logger

	transport transport.Transport // tests put another in
}

func (c Config) withDefaults() Config {
	if c.Owner == "" {
		host, _ := os.Hostname()
		c.Owner = fmt.Sprintf("%s on %s, pid %d", filepath.Base(os.Args[0]), host, os.Getpid())
	}
	if c.MemoryCap == 0 {
		c.MemoryCap = DefaultMemoryCap
	}
	c.MemoryCap = max(c.MemoryCap, 64<<20)
	if c.MapCap == 0 {
		c.MapCap = 256 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Cell is a connection to a cell. Safe for concurrent use; Close it.
type Cell struct {
	cfg     Config
	meta    *dial.Meta
	session *session
	places  *placements
	shards  *shardServers
	reports reporter
	life    context.Context // ends with Close
	die     context.CancelFunc

	mu      sync.Mutex
	volumes map[layout.VolumeID]*Volume // guarded by mu: those open for writing
	closed  bool                        // guarded by mu
}

// Dial connects to a cell and opens a session there. It fails within 5 s when no
// metadata server answers; the error names the address tried and the reason.
func Dial(ctx context.Context, cfg Config) (*Cell, error) {
	cfg = cfg.withDefaults()
	meta, err := dial.NewMeta(cfg.Addresses, tls.Policy{})
	if err != nil {
		return nil, err
	}
	c := &Cell{cfg: cfg, meta: meta, volumes: map[layout.VolumeID]*Volume{}}
	c.life, c.die = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if c.session, err = openSession(ctx, c); err != nil {
		c.die()
		meta.Close()
		return nil, err
	}
	c.places = newPlacements(meta)
	c.shards = newShardServers(c)
	return c, nil
}

// Close ends the session. Volumes still open for writing are closed first:
// flushed, and their leases released. It returns the first error of these.
func (c *Cell) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	open := make([]*Volume, 0, len(c.volumes))
	for _, v := range c.volumes {
		open = append(open, v)
	}
	c.mu.Unlock()
	var first error
	for _, v := range open {
		if err := v.Close(); err != nil && first == nil {
			first = err
		}
	}
	c.die()
	c.reports.done.Wait()
	c.session.close()
	c.shards.close()
	c.meta.Close()
	return first
}

// adopt registers a volume that is open for writing, for session events and Close.
func (c *Cell) adopt(v *Volume) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errs.New(errs.Closed, "open "+v.name, "the cell is closed")
	}
	c.volumes[v.id] = v
	return nil
}

func (c *Cell) forget(v *Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.volumes[v.id] == v {
		delete(c.volumes, v.id)
	}
}

// writers are the volumes that are open for writing.
func (c *Cell) writers() []*Volume {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Volume, 0, len(c.volumes))
	for _, v := range c.volumes {
		list = append(list, v)
	}
	return list
}

// call runs one metadata call and names the operation in its error.
func call[R any](ctx context.Context, c *Cell, op string, f func(context.Context, pb.MetaClient) (R, error)) (R, error) {
	var out R
	err := c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) (err error) {
		out, err = f(ctx, m)
		return err
	})
	return out, errs.Wrap(err, "%s", op)
}
