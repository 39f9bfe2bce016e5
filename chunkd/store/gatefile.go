package store

import (
	"io"
	"sync/atomic"

	"strake/internal/vfs"
)

// gateFile is an open file behind a gate. Size, Sector, Fd and Close pass unguarded.
type gateFile struct {
	vfs.File
	gate  *gate
	dirty atomic.Int64 // bytes written that no sync or write-back was asked for
}

func (f *gateFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.gate.dev.err(); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(p, off)
	f.gate.dev.read.Add(uint64(n))
	return n, err
}

func (f *gateFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	if err := f.gate.dev.err(); err != nil {
		return 0, err
	}
	n, err := f.File.ReadvAt(bufs, off)
	f.gate.dev.read.Add(uint64(n))
	return n, err
}

func (f *gateFile) WriteAt(p []byte, off int64) (int, error) {
	if sunk, err := f.gate.sunk(); sunk {
		return len(p), err
	}
	n, err := f.File.WriteAt(p, off)
	if err != nil && f.gate.again(err) {
		n, err = f.File.WriteAt(p, off)
	}
	f.gate.dev.written[f.gate.kind].Add(uint64(n))
	dirty := f.dirty.Add(int64(n))
	if err != nil {
		if err = f.gate.told(err); err == nil {
			n = len(p)
		}
	} else if f.gate.queue != nil && dirty >= maxBatch(f.gate.queue) {
		err = f.Sync()
	}
	return n, err
}

func (f *gateFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	if sunk, err := f.gate.sunk(); sunk {
		return 0, err // Pebble, which is told of success, has no vectors
	}
	n, err := f.File.WritevAt(bufs, off)
	f.gate.dev.written[f.gate.kind].Add(uint64(n))
	return n, err
}

func (f *gateFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	if sunk, err := f.gate.sunk(); sunk {
		return 0, err
	}
	n, err := f.File.WriteDirect(p, off, durable)
	f.gate.dev.written[f.gate.kind].Add(uint64(n))
	if durable {
		err = f.gate.dev.synced(err)
	}
	return n, err
}

func (f *gateFile) Sync() error {
	if sunk, err := f.gate.sunk(); sunk {
		return err
	}
	var err error
	f.gate.turn(f.dirty.Swap(0), func() { err = f.File.Sync() })
	return f.gate.told(f.gate.dev.synced(err))
}

func (f *gateFile) StartWriteback(off, n int64) error {
	if sunk, err := f.gate.sunk(); sunk {
		return err
	}
	var err error
	f.gate.turn(f.dirty.Swap(0), func() { err = f.File.StartWriteback(off, n) })
	return err
}

func (f *gateFile) Truncate(size int64) error {
	return f.gate.mutate(func() error { return f.File.Truncate(size) })
}

func (f *gateFile) PunchHole(off, n int64) error {
	return f.gate.mutate(func() error { return f.File.PunchHole(off, n) })
}

// nowhere is a file that the index makes after the device failed. The gate keeps
// all calls from it but these.
type nowhere struct{ vfs.File }

func (nowhere) Size() (int64, error)              { return 0, nil }
func (nowhere) Sector() int64                     { return vfs.DirectAlign }
func (nowhere) Fd() (uintptr, bool)               { return 0, false }
func (nowhere) Close() error                      { return nil }
func (nowhere) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
