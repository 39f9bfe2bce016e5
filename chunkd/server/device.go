package server

import (
	"sync"
	"sync/atomic"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// Device is one device that a server serves.
type Device struct {
	ID    layout.DeviceID
	Path  string // for people
	Store Store
	Sched sched.Scheduler // nil: a QoS, or a FIFO under Config.FIFO, with defaults
}

// device is a Device and what the server measures of it: whether its work is done
// where requests are received, or aside.
type device struct {
	Device
	reads, writes pace
	lastRead      atomic.Int64 // ns since made: a read that is no background work
	made          time.Time
}

// readingFor is how long after a read somebody counts as reading.
const readingFor = time.Second

// noteRead notes that somebody reads. It writes to memory that all connections share
// now and then only.
func (d *device) noteRead(now time.Time) {
	at, last := now.Sub(d.made), time.Duration(d.lastRead.Load())
	if last == 0 || at-last > readingFor/8 {
		d.lastRead.Store(int64(at))
	}
}

// reading tells whether somebody read lately.
func (d *device) reading(now time.Time) bool {
	last := d.lastRead.Load()
	return last != 0 && now.Sub(d.made)-time.Duration(last) < readingFor
}

const (
	// inlineRead and inlineWrite are how long a connection's other requests may be
	// held up by one that is served inline. A hop to another goroutine costs some
	// ten microseconds; a large write costs its copy into the page cache anyway.
	inlineRead  = 300 * time.Microsecond
	inlineWrite = time.Millisecond
)

// pace is the recent time of one kind of work, in ns for each started 64 KiB.
type pace struct{ ns atomic.Int64 }

const paceUnit = 64 << 10

func steps(n int) int64 { return max(1, int64(n+paceUnit-1)/paceUnit) }

// expects is how long work on n bytes will probably take.
func (p *pace) expects(n int) time.Duration { return time.Duration(p.ns.Load() * steps(n)) }

// measured takes in how long work took. Lost updates do no harm.
func (p *pace) measured(n int, took time.Duration) {
	old := p.ns.Load()
	p.ns.Store(old + (int64(took)/steps(n)-old)/8)
}

// err tells why the device no longer answers, nil while it does.
func (d *device) err() error {
	select {
	case <-d.Store.Failed():
		return errs.New(errs.Unavailable, "", "device %d at %s has failed: %v", d.ID, d.Path, d.Store.Err()).
			WithHint("use the other shards; replace the device")
	default:
		return nil
	}
}

// devices finds the device of a shard. With one device that is all there is to
// it; with several, an index is kept in step with creations and deletions.
type devices struct {
	all []*device

	mu    sync.RWMutex
	where map[frame.ShardRef]*device // guarded by mu; nil with one device
}

func newDevices(list []Device, fifo bool) *devices {
	ds := &devices{}
	for _, d := range list {
		switch {
		case d.Sched != nil:
		case fifo:
			d.Sched = sched.NewFIFO(0, 0)
		default:
			d.Sched = sched.NewQoS(mclock.Options{})
		}
		ds.all = append(ds.all, &device{Device: d, made: time.Now()})
	}
	if len(ds.all) < 2 {
		return ds
	}
	ds.where = map[frame.ShardRef]*device{}
	for _, d := range ds.all {
		d.Store.Each(func(s store.Stat) bool { ds.where[s.Ref] = d; return true })
	}
	return ds
}

// find gives the device that serves a shard; a shard that no device has goes to
// the one that has it in another generation, else to the first: its store says
// what it knows of it.
func (ds *devices) find(ref frame.ShardRef) (*device, error) {
	if len(ds.all) == 0 {
		return nil, errs.New(errs.NotHere, "", "the server has no device")
	}
	d := ds.all[0]
	if ds.where != nil {
		ds.mu.RLock()
		at, ok := ds.where[ref]
		ds.mu.RUnlock()
		if ok {
			d = at
		} else {
			d = ds.nearest(ref)
		}
	}
	return d, d.err()
}

// nearest is find for a shard that no device has in this generation.
func (ds *devices) nearest(ref frame.ShardRef) *device {
	for _, d := range ds.all {
		if _, err := d.Store.Stat(ref); errs.KindOf(err) == errs.StaleGeneration {
			return d
		}
	}
	return ds.all[0]
}

// byID gives a device by its id; nil when it is none of this server's.
func (ds *devices) byID(id layout.DeviceID) *device {
	for _, d := range ds.all {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// created and deleted keep the index. A shard may be on two devices, in two
// generations, while it moves from one to the other.
func (ds *devices) created(ref frame.ShardRef, d *device) {
	if ds.where != nil {
		ds.mu.Lock()
		ds.where[ref] = d
		ds.mu.Unlock()
	}
}

func (ds *devices) deleted(ref frame.ShardRef, d *device) {
	if ds.where != nil {
		ds.mu.Lock()
		if ds.where[ref] == d {
			delete(ds.where, ref)
		}
		ds.mu.Unlock()
	}
}
