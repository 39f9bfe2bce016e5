package store

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"strake/internal/errs"
	"strake/internal/vfs"
)

// traffic is what a gate's bytes are counted as.
type traffic uint8

const (
	dataTraffic traffic = iota
	logTraffic
	indexTraffic

	traffics
)

// device is what all gates of a store share: the latch and the counters.
//
// The latch. After a failed fsync the kernel may mark the pages clean, and the
// next fsync would succeed for bytes that are lost. So the first error of a
// Sync or SyncDir latches here, at the one place that every call passes, and
// from then on nothing reaches the disk any more, not even Pebble's background
// work.
type device struct {
	failure atomic.Pointer[errs.Error]
	failed  chan struct{} // closed by the first failure that is not Close
	once    sync.Once
	relieve func() bool // gives up the reserve; true when the call may be tried again

	written             [traffics]atomic.Uint64
	read, syncs, copies atomic.Uint64
}

func newDevice() *device {
	return &device{failed: make(chan struct{}), relieve: func() bool { return false }}
}

// fail latches the first error and tells it by closing failed.
func (d *device) fail(err error) error {
	e := &errs.Error{Op: "device", Kind: errs.Unavailable, Message: "failed and answers no more", Cause: err,
		Hint: "replace the device; what it acknowledged is rebuilt from the other shards"}
	if d.failure.CompareAndSwap(nil, e) {
		d.once.Do(func() { close(d.failed) })
	}
	return d.failure.Load()
}

// shut refuses every later call, without calling it a failure.
func (d *device) shut() {
	d.failure.CompareAndSwap(nil, errs.New(errs.Closed, "device", "the store is closed"))
}

func (d *device) err() error {
	if e := d.failure.Load(); e != nil {
		return e
	}
	return nil
}

// synced latches the error of a sync.
func (d *device) synced(err error) error {
	d.syncs.Add(1)
	if err != nil {
		return d.fail(err)
	}
	return nil
}

// indexRetryDelay slows Pebble's background work down, which repeats at once
// what failed, and goes on after the device has failed.
const indexRetryDelay = 50 * time.Millisecond

// refusal is the failure, if there is one; the index is told late.
func (g *gate) refusal() error {
	err := g.dev.err()
	if err != nil && g.kind == indexTraffic {
		time.Sleep(indexRetryDelay)
	}
	return err
}

// full tells whether a call that failed may be tried again: the disk is full, it
// is the index that asks, and the reserve makes room.
func (g *gate) full(err error) bool {
	if g.kind != indexTraffic || !errors.Is(err, syscall.ENOSPC) {
		return false
	}
	if g.dev.relieve() {
		return true
	}
	time.Sleep(indexRetryDelay)
	return false
}

// gate is a vfs.FS that counts, and refuses everything once the device failed.
// Index traffic that finds the disk full gets the reserve and a second try.
type gate struct {
	fs   vfs.FS
	dev  *device
	kind traffic
}

var _ vfs.FS = (*gate)(nil)

// pass runs a call unless the device failed.
func (g *gate) pass(call func() error) error {
	if err := g.refusal(); err != nil {
		return err
	}
	err := call()
	if err != nil && g.full(err) {
		err = call()
	}
	return err
}

func (g *gate) open(open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := g.pass(func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &gateFile{File: f, gate: g}, nil
}

// Create makes a manifest of the index durable at once, and Remove first makes
// durable what is to stand in place of a marker: Pebble relies on a directory's
// changes to become durable in their order, which vfs does not promise.
func (g *gate) Create(path string) (vfs.File, error) {
	f, err := g.open(func() (vfs.File, error) { return g.fs.Create(path) })
	if err != nil || !g.ordered(path, "MANIFEST-") {
		return f, err
	}
	if err := g.dev.synced(g.fs.SyncDir(indexDir)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ordered: the directory change is one that must not overtake another.
func (g *gate) ordered(path, prefix string) bool {
	return g.kind == indexTraffic && strings.HasPrefix(path, indexDir+"/"+prefix)
}

func (g *gate) Open(path string) (vfs.File, error) {
	return g.open(func() (vfs.File, error) { return g.fs.Open(path) })
}

func (g *gate) OpenRead(path string) (vfs.File, error) {
	return g.open(func() (vfs.File, error) { return g.fs.OpenRead(path) })
}

// Remove: see Create.
func (g *gate) Remove(path string) error {
	if g.ordered(path, "marker.") {
		if err := g.pass(func() error { return g.dev.synced(g.fs.SyncDir(indexDir)) }); err != nil {
			return err
		}
	}
	return g.pass(func() error { return g.fs.Remove(path) })
}

func (g *gate) Rename(from, to string) error {
	return g.pass(func() error { return g.fs.Rename(from, to) })
}

func (g *gate) Link(from, to string) error {
	return g.pass(func() error { return g.fs.Link(from, to) })
}

func (g *gate) MkdirAll(path string) error {
	return g.pass(func() error { return g.fs.MkdirAll(path) })
}

func (g *gate) List(path string) (names []string, err error) {
	err = g.pass(func() (err error) { names, err = g.fs.List(path); return err })
	return names, err
}

func (g *gate) Stat(path string) (info fs.FileInfo, err error) {
	err = g.pass(func() (err error) { info, err = g.fs.Stat(path); return err })
	return info, err
}

// SyncDir tells the index of success even when it failed: Pebble panics at this
// error in a goroutine of its own, which would end the process and with it the
// other devices. The latch is set before, so nothing is acknowledged any more.
func (g *gate) SyncDir(path string) error {
	err := g.refusal()
	if err == nil {
		err = g.dev.synced(g.fs.SyncDir(path))
	}
	if g.kind == indexTraffic {
		return nil
	}
	return err
}

func (g *gate) Lock(path string) (vfs.Lock, error) { return g.fs.Lock(path) }

func (g *gate) Usage() (u vfs.Usage, err error) {
	err = g.pass(func() (err error) { u, err = g.fs.Usage(); return err })
	return u, err
}
