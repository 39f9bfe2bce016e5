package chunkd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"strake/chunkd/format"
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
}

func (d *device) formatted() bool { return d.super.UUID != layout.UUID{} }

// identity is what all devices of a server agree on.
type identity struct {
	cell   layout.CellID // 0: no device knows it yet
	server layout.UUID
}

// inspect looks at all directories and finds the identity that they agree on.
func inspect(cfg *Config) (devices []*device, id identity, err error) {
	var first *device // that has a superblock
	for _, dir := range cfg.Devices {
		d := &device{dir: dir}
		if d.fs, err = cfg.FS(dir); err != nil {
			return nil, id, errs.As(err, errs.InvalidArgument, "open device %s", dir).(*errs.Error).WithHint("make the directory, or mount the device")
		}
		if d.super, err = superblock(d.fs); err != nil {
			return nil, id, errs.Wrap(err, "open device %s", dir)
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
	if first != nil {
		return devices, identity{first.super.Cell, first.super.Server}, nil
	}
	id.server, err = newUUID()
	return devices, id, err
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

// open formats and opens all devices; on error those opened are closed again.
func open(ctx context.Context, devices []*device, id identity, cfg *Config) error {
	for _, d := range devices {
		err := context.Cause(ctx)
		if err == nil {
			err = d.prepare(id)
		}
		if err == nil {
			want := format.Superblock{Cell: id.cell, Server: id.server, UUID: d.super.UUID}
			if d.store, err = store.Open(d.fs, want, store.Options{Logger: cfg.Logger}); err != nil {
				d.store = nil
				err = errs.Wrap(err, "open device %s", d.dir)
			}
		}
		if err != nil {
			return errors.Join(err, closeAll(devices))
		}
	}
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
