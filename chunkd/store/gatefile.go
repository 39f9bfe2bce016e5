package store

import "strake/internal/vfs"

// gateFile is an open file behind a gate. Size, Fd and Close pass unguarded.
type gateFile struct {
	vfs.File
	gate *gate
}

func (f *gateFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.gate.refusal(); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(p, off)
	f.gate.dev.read.Add(uint64(n))
	return n, err
}

func (f *gateFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	if err := f.gate.refusal(); err != nil {
		return 0, err
	}
	n, err := f.File.ReadvAt(bufs, off)
	f.gate.dev.read.Add(uint64(n))
	return n, err
}

func (f *gateFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.gate.refusal(); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(p, off)
	if err != nil && f.gate.full(err) {
		n, err = f.File.WriteAt(p, off)
	}
	f.gate.dev.written[f.gate.kind].Add(uint64(n))
	return n, err
}

func (f *gateFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	if err := f.gate.refusal(); err != nil {
		return 0, err
	}
	n, err := f.File.WritevAt(bufs, off)
	if err != nil && f.gate.full(err) {
		n, err = f.File.WritevAt(bufs, off)
	}
	f.gate.dev.written[f.gate.kind].Add(uint64(n))
	return n, err
}

func (f *gateFile) Sync() error {
	if err := f.gate.refusal(); err != nil {
		return err
	}
	return f.gate.dev.synced(f.File.Sync())
}

func (f *gateFile) StartWriteback(off, n int64) error {
	if err := f.gate.refusal(); err != nil {
		return err
	}
	return f.File.StartWriteback(off, n)
}

func (f *gateFile) Truncate(size int64) error {
	return f.gate.pass(func() error { return f.File.Truncate(size) })
}

func (f *gateFile) PunchHole(off, n int64) error {
	return f.gate.pass(func() error { return f.File.PunchHole(off, n) })
}
