package janitor

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/chunkd/format"
	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/internal/erasure"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// Store is what the janitor needs of a device's store; *store.Store is one.
type Store interface {
	Superblock() format.Superblock
	Create(spec store.ShardSpec) error
	Fill(ref frame.ShardRef, units []store.Unit, turns store.Turns) error
	Mend(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error
	Delete(ref frame.ShardRef) error
	Discard(ref frame.ShardRef) error
	Read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error)
	List(ref frame.ShardRef, from layout.Seq, most int) (headers []byte, count int, next layout.Seq, err error)
	Stat(ref frame.ShardRef) (store.Stat, error)
	Each(visit func(store.Stat) bool)
	Err() error
}

var _ Store = (*store.Store)(nil)

// Device is one device that the janitor looks after.
type Device struct {
	ID    layout.DeviceID
	Store Store
	Sched sched.Scheduler
}

// Meta calls the metadata leader; *dial.Meta is one.
type Meta interface {
	Do(ctx context.Context, call func(context.Context, pb.MetaClient) error) error
}

// Config is what a janitor works with; zero fields take the defaults.
type Config struct {
	Cell    layout.CellID
	Server  layout.ServerID
	Devices []Device
	Meta    Meta
	Dial    func(ctx context.Context, addr string) (net.Conn, error) // to data planes
	// Made and Gone are told of shards that came to a device or left it.
	Made, Gone func(ref frame.ShardRef, device layout.DeviceID)

	RebuildRate int64         // ceiling of rebuilds, bytes written a second; 0: none
	ScrubRate   int64         // ceiling of scrubs, bytes read a second of each device; 0: 64 MiB
	ScrubCycle  time.Duration // in which a device is read once; 0: a week; negative: never
	SweepEvery  time.Duration // how often leftovers are looked for; 0: an hour
	Logger      *slog.Logger
}

const (
	DefaultScrubRate  = 64 << 20           // bytes a second of each device
	DefaultScrubCycle = 7 * 24 * time.Hour // in which each device is read once

	defaultSweep = time.Hour
)

func (c *Config) defaults() {
	if c.ScrubRate == 0 {
		c.ScrubRate = DefaultScrubRate
	}
	if c.ScrubCycle == 0 {
		c.ScrubCycle = DefaultScrubCycle
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = defaultSweep
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for _, tell := range []*func(frame.ShardRef, layout.DeviceID){&c.Made, &c.Gone} {
		if *tell == nil {
			*tell = func(frame.ShardRef, layout.DeviceID) {}
		}
	}
}

// Janitor is a running janitor. Safe for concurrent use.
type Janitor struct {
	cfg     Config
	log     *slog.Logger
	sources *pool
	coders  erasure.Set
	slabs   Slabs
	rebuilt pace
	scrubs  []*scrub

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup // goroutines and calls

	mu     sync.Mutex
	closed bool                         // guarded by mu
	busy   map[layout.ShardKey]struct{} // guarded by mu: what a task works on
}

// New starts a janitor. Close it.
func New(cfg Config) *Janitor {
	cfg.defaults()
	j := &Janitor{cfg: cfg, log: cfg.Logger, sources: newPool(cfg.Dial, cfg.Cell), busy: map[layout.ShardKey]struct{}{}}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	j.rebuilt.set(cfg.RebuildRate)
	for _, d := range cfg.Devices {
		s := newScrub(j, d)
		j.scrubs = append(j.scrubs, s)
		j.done.Go(s.run)
	}
	j.done.Go(j.sweeps)
	return j
}

// Close ends all work and waits for it.
func (j *Janitor) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.cancel()
	j.done.Wait()
	j.sources.close()
}

// begin claims a shard for a task; end gives it back. Errors: Busy, Closed.
func (j *Janitor) begin(key layout.ShardKey) (end func(), err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, errs.New(errs.Closed, "", "the server shuts down")
	}
	if _, taken := j.busy[key]; taken {
		return nil, errs.New(errs.Busy, "", "another task works on shard %v", key)
	}
	j.busy[key] = struct{}{}
	j.done.Add(1)
	return func() {
		j.mu.Lock()
		delete(j.busy, key)
		j.mu.Unlock()
		j.done.Done()
	}, nil
}

// device gives a device by its id. Error: NotHere.
func (j *Janitor) device(id layout.DeviceID) (*Device, error) {
	for i := range j.cfg.Devices {
		if d := &j.cfg.Devices[i]; d.ID == id {
			return d, d.Store.Err()
		}
	}
	return nil, errs.New(errs.NotHere, "", "device %d is not on this server", id)
}

// turn runs work on n bytes when the device's turn for background work comes. It
// pays for each quantum; the last one carries the work.
func (d *Device) turn(ctx context.Context, write bool, n int, work func() error) (err error) {
	tag := background(write, sched.Quantum)
	for ; n > sched.Quantum; n -= sched.Quantum {
		if err := d.Sched.Do(ctx, tag, func() {}); err != nil {
			return err
		}
		tag.Part = true
	}
	tag.Bytes = n
	if e := d.Sched.Do(ctx, tag, func() { err = work() }); e != nil {
		return e
	}
	return err
}

// readsAtOnce is how many quanta of a read are on their way: with one, a device
// whose quanta are short would be idle from the end of one to the begin of the next.
const readsAtOnce = 2

// read fills buf from a shard, each quantum in a turn of its own, so that others
// get theirs in between.
func (d *Device) read(ctx context.Context, ref frame.ShardRef, at layout.ShardOffset, buf []byte) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for part := false; len(buf) > 0; part = true {
		quantum := d.Sched.Quantum(false)
		n := min(len(buf), quantum)
		alone := quantum == sched.Quantum || !part && n == len(buf)
		tag, piece, from := background(false, n), buf[:n], at
		tag.Part = part
		one := func() (err error) {
			bad := d.Sched.Do(ctx, tag, func() {
				_, err = d.Store.Read(ref, []frame.ReadRange{{Offset: from, Length: uint32(n)}}, piece)
			})
			return cmp.Or(bad, err)
		}
		at, buf = at+layout.ShardOffset(n), buf[n:]
		if !alone {
			group.Go(one)
		} else if err := one(); err != nil {
			return cmp.Or(group.Wait(), err)
		}
	}
	return group.Wait()
}

// fillTurns are a device's, as the store sees them, for the bytes of one Fill: one
// piece after the other.
type fillTurns struct {
	dev  *Device
	do   func(tag sched.Tag, work func()) error // waits as long as the task lasts
	part bool
}

func (d *Device) turns(ctx context.Context) *fillTurns {
	return &fillTurns{dev: d, do: func(tag sched.Tag, work func()) error { return d.Sched.Do(ctx, tag, work) }}
}

// Piece implements store.Turns.
func (t *fillTurns) Piece() int { return t.dev.Sched.Quantum(true) }

// Turn implements store.Turns.
func (t *fillTurns) Turn(n int, work func() error) (err error) {
	tag := background(true, n)
	tag.Part, t.part = t.part, true
	if bad := t.do(tag, func() { err = work() }); bad != nil {
		return bad
	}
	return err
}

// Wait implements store.Turns: nothing is under way.
func (t *fillTurns) Wait() error { return nil }

func background(write bool, n int) sched.Tag {
	return sched.Tag{Class: layout.ClassBackground, Tenant: layout.DefaultTenantID, Write: write, Bytes: n}
}
