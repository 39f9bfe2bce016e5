package store

import (
	"sync"
	"sync/atomic"

	"strake/internal/errs"
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

	written                     [traffics]atomic.Uint64
	read, syncs, copies, copied atomic.Uint64
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

// refuse latches a reason that is not the disk's.
func (d *device) refuse(why error) {
	if d.failure.CompareAndSwap(nil, &errs.Error{Op: "device", Kind: errs.Unavailable, Message: "answers no more", Cause: why, Hint: errs.HintOf(why)}) {
		d.once.Do(func() { close(d.failed) })
	}
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
