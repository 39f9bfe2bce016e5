package client

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client/internal/extent"
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
	// closeTimeout bounds how long Cell.Close waits for one volume.
	closeTimeout = 30 * time.Second
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
	// MapCap bounds what the extent maps of all volumes hold in memory together, in
	// bytes: loaded pages, and changes since the newest map checkpoint, which are
	// not given up. Default 256 MiB.
	MapCap int64
	// Logger gets what an operator would look back for. Default: discards.
	Logger *slog.Logger
	// Waiting is told what calls have waited for, for 5 s, and again now and then
	// as long as they wait; so is the Logger. It must not block. nil: nobody.
	Waiting func(Waiting)
	// Trace records every read, write, flush and discard of the cell's volumes. nil:
	// none.
	Trace *Trace
	// Tuning is for tests.
	Tuning Tuning

	transport transport.Transport // tests put another in
	janitor   bool                // others take its leases without force
}

// Tuning makes rare things happen often; zero fields mean the defaults.
type Tuning struct {
	// MapHeaders is how many stripes make a map checkpoint due; default 1 Mi.
	MapHeaders int64
	// CloseHeaders is how many make one worth while when a volume is closed;
	// default 512.
	CloseHeaders int64
	// CleanEvery is how often a writer looks whether its volume wants cleaning;
	// default 5 s, negative: never.
	CleanEvery time.Duration
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
	if c.Tuning.MapHeaders == 0 {
		c.Tuning.MapHeaders = extent.DueHeaders
	}
	if c.Tuning.CloseHeaders == 0 {
		c.Tuning.CloseHeaders = closeHeaders
	}
	if c.Tuning.CleanEvery == 0 {
		c.Tuning.CleanEvery = cleanEvery
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
	buffers buffers
	maps    mapAccount
	waits   *waits
	classes sync.Map        // numbers by names of classes that were asked for, see knownClass
	life    context.Context // ends with Close
	die     context.CancelFunc

	mu      sync.Mutex
	volumes map[layout.VolumeID]*Volume // guarded by mu: those open for writing
	deposed map[*Volume]bool            // guarded by mu: handles that lost their lease to a later one here, until they are closed
	pins    map[uint64]int              // guarded by mu: handles of each snapshot that is open here
	// Guarded by mu: calls that give up a snapshot's pin, by snapshot, and how many ever began.
	unpinning map[uint64]chan struct{}
	unpins    uint64
	opening   map[string]bool // guarded by mu: names of volumes that are being opened for writing
	closed    bool            // guarded by mu
	ended     chan struct{}   // closed when Close is done
	endErr    error           // set before ended is closed
}

// Dial connects to a cell and opens a session there. It fails within 5 s when no
// metadata server answers; the error names the address tried and the reason.
func Dial(ctx context.Context, cfg Config) (*Cell, error) {
	cfg = cfg.withDefaults()
	meta, err := dial.NewMeta(cfg.Addresses, tls.Policy{})
	if err != nil {
		return nil, err
	}
	c := &Cell{cfg: cfg, meta: meta, places: newPlacements(meta), volumes: map[layout.VolumeID]*Volume{}, deposed: map[*Volume]bool{},
		pins: map[uint64]int{}, unpinning: map[uint64]chan struct{}{}, opening: map[string]bool{}, ended: make(chan struct{})}
	c.waits = newWaits(c)
	c.life, c.die = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if c.session, err = openSession(ctx, c); err != nil {
		c.die()
		meta.Close()
		return nil, err
	}
	c.shards = newShardServers(c)
	c.session.start()
	c.waits.start(c.life)
	return c, nil
}

// Close ends the session. Volumes still open for writing are closed first:
// flushed, and their leases released, for which each has 30 s. It returns the
// first error of these; a second Close waits for the first and gives the same.
func (c *Cell) Close() error {
	open, first := c.shut()
	if !first {
		<-c.ended
		return c.endErr
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var group errgroup.Group
	for _, v := range open {
		group.Go(func() error { return v.CloseContext(ctx) })
	}
	for _, v := range c.leftovers() {
		group.Go(func() error { _ = v.CloseContext(ctx); return nil }) // its error was told when it lost its lease
	}
	c.endErr = group.Wait()
	c.die()
	c.waits.done.Wait()
	c.reports.done.close()
	c.session.close()
	c.shards.close()
	c.meta.Close()
	close(c.ended)
	return c.endErr
}

// Abandon lets go of everything at once, as a crash of the process would:
// nothing is flushed, no lease is released, and the session is left to expire.
// Writes that were not flushed may be lost. For who must not wait, and for
// tests of what recovery makes of it.
func (c *Cell) Abandon() {
	open, first := c.shut()
	if !first {
		<-c.ended
		return
	}
	c.die()
	c.waits.done.Wait()
	for _, v := range append(open, c.leftovers()...) {
		v.abandon()
	}
	c.shards.close()
	c.reports.done.close()
	c.session.stop()
	c.meta.Close()
	c.endErr = errs.New(errs.Closed, "", "the cell was abandoned")
	close(c.ended)
}

// shut lets no more volumes in and gives those that are open for writing; first
// is false when somebody else did.
func (c *Cell) shut() (open []*Volume, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	c.closed = true
	for _, v := range c.volumes {
		open = append(open, v)
	}
	return open, true
}

// adopt registers a volume that is open for writing, for session events and
// Close. A handle of the same volume that is open here has lost its lease to it.
func (c *Cell) adopt(v *Volume) error {
	c.mu.Lock()
	old := c.volumes[v.id]
	session := c.session.current()
	var err error
	switch {
	case c.closed:
		err = errs.New(errs.Closed, "open "+v.name, "the cell is closed")
	case session != v.w.lease.session:
		err = errs.New(errs.LeaseLost, "open "+v.name, "the session ended meanwhile").WithHint("open it again")
	default:
		c.volumes[v.id] = v
		if old != nil {
			c.deposed[old] = true
		}
	}
	c.mu.Unlock()
	if err == nil && old != nil {
		old.lose(errs.New(errs.LeaseLost, "write "+v.name, "the volume was opened again, with Force"))
	}
	return err
}

// enter begins to open a volume for writing. The metadata service lets a session
// take a lease that it holds already, so who writes within this process is
// settled here.
func (c *Cell) enter(op, name string, force bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.opening[name]
	for _, v := range c.volumes {
		held = held || v.name == name && !force && v.w.alive()
	}
	if held {
		return errs.New(errs.LeaseHeld, op, "%s writes it, in this very process", c.cfg.Owner).
			WithHint("close it first, or open it with Force")
	}
	c.opening[name] = true
	return nil
}

func (c *Cell) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opening, name)
}

func (c *Cell) forget(v *Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.deposed, v)
	if c.volumes[v.id] == v {
		delete(c.volumes, v.id)
	}
}

// leftovers are the handles that lost their lease to a later one here and were
// not closed.
func (c *Cell) leftovers() (list []*Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := range c.deposed {
		list = append(list, v)
	}
	return list
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
	defer c.waits.begin(op, "the metadata leader has not answered yet")()
	err := c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) (err error) {
		out, err = f(ctx, m)
		return err
	})
	return out, errs.Wrap(err, "%s", op)
}
