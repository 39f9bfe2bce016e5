package vfs

import (
	"bytes"
	"os"
	"syscall"
)

// memFile is a handle on a node.
type memFile struct {
	m        *Mem
	n        *node
	name     string
	readOnly bool
	closed   bool // guarded by m.mu
}

// at runs do under the lock, unless the handle or the device is gone.
func (f *memFile) at(op string, do func(c *content) error) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	var err error
	switch {
	case f.closed:
		err = os.ErrClosed
	case f.m.cut:
		err = ErrPowerCut
	default:
		err = do(&f.n.data)
	}
	if err != nil {
		return pathError(op, f.name, err)
	}
	return nil
}

// change is at for calls that alter the file; it keeps account of pages.
func (f *memFile) change(op string, do func(c *content) error) error {
	return f.at(op, func(c *content) error {
		if f.readOnly {
			return syscall.EBADF
		}
		before := len(c.pages)
		err := do(c)
		f.m.used += int64(len(c.pages) - before)
		return err
	})
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (n int, err error) {
	var end error // io.EOF, which must come unwrapped
	err = f.at("read", func(c *content) error {
		if off < 0 {
			return syscall.EINVAL
		}
		n, end = c.read(p, off)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, end
}

// WriteAt implements File. Without space for all of p it writes what fits.
func (f *memFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.change("write", func(c *content) error {
		if off < 0 {
			return syscall.EINVAL
		}
		n = int(c.fit(off, int64(len(p)), f.m.free()))
		if n > 0 {
			f.n.write(p[:n], off)
		}
		if n < len(p) {
			return syscall.ENOSPC
		}
		return nil
	})
	return n, err
}

// ReadvAt implements File.
func (f *memFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	total := 0
	for i, p := range bufs {
		if len(p) == 0 && i > 0 {
			continue
		}
		n, err := f.ReadAt(p, off+int64(total))
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// WritevAt implements File; for a power cut it is one write.
func (f *memFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	return f.WriteAt(bytes.Join(bufs, nil), off)
}

// WriteDirect implements File.
func (f *memFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	n, err := f.WriteAt(p, off)
	if err == nil && durable {
		err = f.Sync()
	}
	return n, err
}

// Sector implements File: writes are torn by these.
func (f *memFile) Sector() int64 { return sectorSize }

// Sync implements File.
func (f *memFile) Sync() error {
	return f.at("sync", func(c *content) error {
		c.settle()
		return nil
	})
}

// failSync is what a failed sync does to the un-synced content. Fault calls it.
func (f *memFile) failSync() {
	_ = f.at("sync", func(c *content) error {
		c.forsake()
		return nil
	})
}

// StartWriteback implements File; it does nothing, as it promises nothing.
func (f *memFile) StartWriteback(off, n int64) error {
	return f.at("writeback", func(*content) error { return checkRange(off, n) })
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	return f.change("truncate", func(c *content) error {
		if size < 0 {
			return syscall.EINVAL
		}
		c.log(change{kind: changeTruncate, off: size})
		return nil
	})
}

// PunchHole implements File.
func (f *memFile) PunchHole(off, n int64) error {
	return f.change("punch hole", func(c *content) error {
		if n > 0 && off >= 0 {
			c.log(change{kind: changePunch, off: off, n: n})
		}
		return checkRange(off, n)
	})
}

// Size implements File.
func (f *memFile) Size() (size int64, err error) {
	err = f.at("size", func(c *content) error {
		size = c.size
		return nil
	})
	return size, err
}

// Fd implements File: there is none.
func (f *memFile) Fd() (uintptr, bool) { return 0, false }

// Close implements File. It succeeds after a power cut too.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, os.ErrClosed)
	}
	f.closed = true
	f.n.opens--
	f.m.release(f.n)
	return nil
}

func checkRange(off, n int64) error {
	if off < 0 || n < 0 {
		return syscall.EINVAL
	}
	return nil
}
