package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"strake/internal/vfs"
)

// gate is a vfs.FS that counts, and lets nothing through once the device failed.
//
// The index is told less than the truth: a mutation of it that fails latches the
// device, and it and all later ones seem to succeed and go nowhere. Pebble, told
// the truth, repeats a flush that fails for ever, and panics, past any recover,
// where it can't make a log or sync a directory: that would cost the process its
// other devices. Nobody is misled, as the latch is looked at before anything is
// acknowledged. Index traffic that finds the disk full gets the reserve and a
// second try first.
type gate struct {
	fs   vfs.FS
	dev  *device
	kind traffic
	// queue gives syncs their turns, where not nil: those of the index, whose callers
	// know nothing of turns.
	queue Queue
}

// turn runs work that has the device write n bytes.
func (g *gate) turn(n int64, work func()) {
	if g.queue == nil {
		work()
		return
	}
	g.queue.Turn(int(n), work)
}

var _ vfs.FS = (*gate)(nil)

// sunk tells whether a mutation shall go nowhere, and what to answer.
func (g *gate) sunk() (sunk bool, err error) {
	err = g.dev.err()
	if err != nil && g.kind == indexTraffic {
		return true, nil
	}
	return err != nil, err
}

// again: the disk is full, it is the index that asks, and the reserve made room.
func (g *gate) again(err error) bool {
	return g.kind == indexTraffic && errors.Is(err, syscall.ENOSPC) && g.dev.relieve()
}

// told is what the caller is told of a mutation that failed.
func (g *gate) told(err error) error {
	if err == nil || g.kind != indexTraffic || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	_ = g.dev.fail(fmt.Errorf("index: %w", err))
	return nil
}

func (g *gate) mutate(call func() error) error {
	if sunk, err := g.sunk(); sunk {
		return err
	}
	err := call()
	if err != nil && g.again(err) {
		err = call()
	}
	return g.told(err)
}

func (g *gate) look(call func() error) error {
	if err := g.dev.err(); err != nil {
		return err
	}
	return call()
}

// syncDir syncs a directory and latches its error.
func (g *gate) syncDir(path string) error {
	return g.mutate(func() error { return g.dev.synced(g.fs.SyncDir(path)) })
}

// Create makes a manifest of the index durable at once, and Remove first makes
// durable what is to stand in place of a marker: Pebble relies on a directory's
// changes to become durable in their order, which vfs does not promise.
func (g *gate) Create(path string) (vfs.File, error) {
	var f vfs.File = nowhere{}
	err := g.mutate(func() error {
		made, err := g.fs.Create(path)
		if err == nil {
			f = made
		}
		return err
	})
	if err == nil && g.ordered(path, "MANIFEST-") {
		err = g.syncDir(indexDir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &gateFile{File: f, gate: g}, nil
}

// ordered: the directory change is one that must not overtake another.
func (g *gate) ordered(path, prefix string) bool {
	return g.kind == indexTraffic && strings.HasPrefix(path, indexDir+"/"+prefix)
}

// Remove: see Create.
func (g *gate) Remove(path string) error {
	if g.ordered(path, "marker.") {
		if err := g.syncDir(indexDir); err != nil {
			return err
		}
	}
	return g.mutate(func() error { return g.fs.Remove(path) })
}

func (g *gate) Open(path string) (vfs.File, error)     { return g.open(path, g.fs.Open) }
func (g *gate) OpenRead(path string) (vfs.File, error) { return g.open(path, g.fs.OpenRead) }

func (g *gate) open(path string, open func(string) (vfs.File, error)) (f vfs.File, err error) {
	err = g.look(func() (err error) {
		f, err = open(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &gateFile{File: f, gate: g}, nil
}

func (g *gate) Rename(from, to string) error {
	return g.mutate(func() error { return g.fs.Rename(from, to) })
}

func (g *gate) Link(from, to string) error {
	return g.mutate(func() error { return g.fs.Link(from, to) })
}

func (g *gate) MkdirAll(path string) error {
	return g.mutate(func() error { return g.fs.MkdirAll(path) })
}

func (g *gate) List(path string) (names []string, err error) {
	err = g.look(func() (err error) { names, err = g.fs.List(path); return err })
	return names, err
}

func (g *gate) Stat(path string) (info fs.FileInfo, err error) {
	err = g.look(func() (err error) { info, err = g.fs.Stat(path); return err })
	return info, err
}

func (g *gate) SyncDir(path string) error { return g.syncDir(path) }

func (g *gate) Lock(path string) (vfs.Lock, error) { return g.fs.Lock(path) }

func (g *gate) Usage() (u vfs.Usage, err error) {
	err = g.look(func() (err error) { u, err = g.fs.Usage(); return err })
	return u, err
}
