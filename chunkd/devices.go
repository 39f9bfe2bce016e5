package chunkd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"strake/chunkd/format"
	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// lockFile is the store's; held while a directory is looked at and formatted,
// so that two processes do not both find it empty.
const lockFile = "LOCK"

// device is one directory and, once it is open, its store.
type device struct {
	dir   string
	fs    vfs.FS
	super format.Superblock // as found; zero: not formatted
	store *store.Store
	sched sched.Scheduler // of the store that is open
}

func (d *device) formatted() bool { return d.super.UUID != layout.UUID{} }

// identity is what all devices of a server agree on.
type identity struct {
	cell   layout.CellID // 0: no device knows it yet
	server layout.UUID
}

// inspect looks at all directories and finds the identity that they agree on. A
// device that can't be read is left out, see broken; a directory that belongs to
// somebody else never is.
func inspect(cfg *Config) (devices []*device, id identity, err error) {
	var first *device // that has a superblock
	var bad []broken
	for _, dir := range cfg.Devices {
		d := &device{dir: dir}
		if err := d.look(cfg); err != nil {
			if !survivable(err) {
				return nil, id, err
			}
			bad = append(bad, broken{dir, err})
			continue
		}
		devices = append(devices, d)
		if !d.formatted() {
			continue
		}
		if first == nil {
			first = d
		}
		if err := agree(first, d); err != nil {
			return nil, id, err
		}
	}
	if first == nil && len(bad) > 0 { // a new server: nothing says that it ever had them
		return nil, id, bad[0].err
	}
	tell(cfg, bad)
	if first != nil {
		return devices, identity{first.super.Cell, first.super.Server}, nil
	}
	id.server, err = newUUID()
	return devices, id, err
}

// look opens a device's directory and reads its superblock.
func (d *device) look(cfg *Config) (err error) {
	if d.fs, err = cfg.FS(d.dir); err != nil {
		return errs.As(err, errs.NotFound, "open device %s", d.dir).(*errs.Error).WithHint("make the directory, or mount the device")
	}
	d.super, err = superblock(d.fs)
	return errs.Wrap(err, "open device %s", d.dir)
}

// broken is a device that the server goes on without. Its registration leaves
// the device out, which tells the metadata service that it is down.
type broken struct {
	dir string
	err error
}

// survivable tells whether an error says something about a device, and not about
// how the server was started: who gives another's directory has to be told.
func survivable(err error) bool {
	switch errs.KindOf(err) {
	case errs.WrongCell, errs.Busy, errs.AlreadyExists, errs.InvalidArgument, errs.Canceled, errs.Deadline:
		return false
	}
	return true
}

func tell(cfg *Config, bad []broken) {
	for _, b := range bad {
		cfg.Logger.Error("device can't be used, the server goes on without it", "path", b.dir, "err", b.err)
	}
}

// superblock reads a superblock; zero when there is none.
func superblock(fsys vfs.FS) (format.Superblock, error) {
	lock, err := fsys.Lock(lockFile)
	if err != nil {
		return format.Superblock{}, err
	}
	super, err := store.Inspect(fsys)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return super, errors.Join(err, lock.Close())
}

// agree refuses two devices of different cells or servers, naming both.
func agree(a, b *device) error {
	if a.super.Cell != b.super.Cell {
		return errs.New(errs.WrongCell, "open device "+b.dir, "it belongs to cell %x, %s to cell %x", uint64(b.super.Cell), a.dir, uint64(a.super.Cell)).
			WithHint("start a server for each cell's devices")
	}
	if a.super.Server != b.super.Server {
		return errs.New(errs.WrongCell, "open device "+b.dir, "it belongs to server %v, %s to server %v", b.super.Server, a.dir, a.super.Server).
			WithHint("start a server for each server's devices")
	}
	return nil
}

// prepare formats the device when its directory is new.
func (d *device) prepare(id identity) (err error) {
	if d.formatted() {
		return nil
	}
	u, err := d.fs.Usage()
	if err == nil && u.Total < store.LeastBytes {
		err = errs.New(errs.InvalidArgument, "", "it has %d bytes: logs and reserves alone take %d", u.Total, store.LeastBytes).
			WithHint("give a larger device")
	}
	if err != nil {
		return errs.Wrap(err, "format device %s", d.dir)
	}
	lock, err := d.fs.Lock(lockFile)
	if err != nil {
		return errs.Wrap(err, "format device %s", d.dir)
	}
	d.super = format.Superblock{Cell: id.cell, Server: id.server}
	if d.super.UUID, err = newUUID(); err == nil {
		err = store.Format(d.fs, d.super)
	}
	return errs.Wrap(errors.Join(err, lock.Close()), "format device %s", d.dir)
}

// open formats and opens all devices, and gives those that are open. One that is
// broken is left out as long as another works. On error none is open.
func open(ctx context.Context, devices []*device, id identity, cfg *Config) (opened []*device, err error) {
	var bad []broken
	for _, d := range devices {
		known := d.formatted()
		err := d.open(ctx, id, cfg)
		switch {
		case err == nil:
			opened = append(opened, d)
		case known && survivable(err):
			bad = append(bad, broken{d.dir, err})
		default:
			return nil, errors.Join(err, closeAll(devices))
		}
	}
	if len(opened) == 0 {
		return nil, bad[0].err
	}
	tell(cfg, bad)
	return opened, nil
}

// open formats the device when it is new, and opens its store.
func (d *device) open(ctx context.Context, id identity, cfg *Config) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := d.prepare(id); err != nil {
		return err
	}
	want := format.Superblock{Cell: id.cell, Server: id.server, UUID: d.super.UUID}
	opts := store.Options{Logger: cfg.Logger}
	if cfg.FIFO {
		d.sched = sched.NewFIFO(0, 0)
	} else {
		q := sched.NewOwn()
		d.sched, opts.Queue = q.QoS, q
	}
	st, err := store.Open(d.fs, want, opts)
	if err != nil {
		return errs.Wrap(err, "open device %s", d.dir)
	}
	d.store = st
	return nil
}

// closeAll closes the stores that are open, and gives every error.
func closeAll(devices []*device) (err error) {
	for _, d := range devices {
		if d.store != nil {
			err = errors.Join(err, errs.Wrap(d.store.Close(), "close device %s", d.dir))
			d.store = nil
		}
	}
	return err
}

func newUUID() (u layout.UUID, err error) {
	if _, err = rand.Read(u[:]); err != nil {
		err = fmt.Errorf("draw a UUID: %w", err)
	}
	return u, err
}
