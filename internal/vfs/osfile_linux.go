package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxVec is the kernel's limit of buffers in one vectored call (IOV_MAX).
const maxVec = 1024

// osFile is an open file of OS. Its methods hold no lock: the kernel orders
// concurrent calls. System calls go through conn, which keeps the descriptor
// from being closed, and then reused for another file, under their feet.
type osFile struct {
	f      *os.File
	conn   syscall.RawConn
	cached cached
	direct direct
}

func newOSFile(f *os.File) (*osFile, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &osFile{f: f, conn: conn}, nil
}

// ReadAt implements File.
func (o *osFile) ReadAt(p []byte, off int64) (int, error) {
	n := o.cached.readAt(o.conn, p, off)
	if n == len(p) && n > 0 {
		return n, nil
	}
	more, err := o.f.ReadAt(p[n:], off+int64(n))
	return n + more, err
}

// WriteAt implements File.
func (o *osFile) WriteAt(p []byte, off int64) (int, error) { return o.f.WriteAt(p, off) }

// ReadvAt implements File with preadv.
func (o *osFile) ReadvAt(bufs [][]byte, off int64) (int, error) {
	var n int
	err := o.call("preadv", func(fd int) (err error) {
		n, err = vector(unix.Preadv, fd, bufs, off)
		return err
	})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return n, io.EOF
	}
	return n, err
}

// WritevAt implements File with pwritev.
func (o *osFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	var n int
	err := o.call("pwritev", func(fd int) (err error) {
		n, err = vector(unix.Pwritev, fd, bufs, off)
		return err
	})
	return n, err
}

type vectorCall func(fd int, iovs [][]byte, off int64) (int, error)

// vector repeats call until every buffer is done. A call that moves nothing
// ends it with io.ErrUnexpectedEOF, so that a device that accepts no bytes
// cannot spin it.
func vector(call vectorCall, fd int, bufs [][]byte, off int64) (int, error) {
	rest, done := trimVec(bufs, 0), 0
	for len(rest) > 0 {
		n, err := call(fd, rest[:min(len(rest), maxVec)], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		if n <= 0 {
			return done, io.ErrUnexpectedEOF
		}
		done += n
		rest = trimVec(rest, n)
	}
	return done, nil
}

// trimVec drops the first n bytes and leading empty buffers. It copies the list
// only when it has to cut a buffer, and never changes the caller's.
func trimVec(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n == 0 {
		return bufs
	}
	cut := append([][]byte(nil), bufs...)
	cut[0] = cut[0][n:]
	return cut
}

// Sync implements File with fdatasync.
func (o *osFile) Sync() error {
	return o.call("fdatasync", unix.Fdatasync)
}

// StartWriteback implements File with sync_file_range.
func (o *osFile) StartWriteback(off, n int64) error {
	if n == 0 {
		return nil // the kernel would take 0 for "to the end"
	}
	return o.call("sync_file_range", func(fd int) error {
		return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

// Truncate implements File.
func (o *osFile) Truncate(size int64) error { return o.f.Truncate(size) }

// PunchHole implements File with fallocate.
func (o *osFile) PunchHole(off, n int64) error {
	if n == 0 {
		return nil // the kernel refuses an empty range
	}
	return o.call("punch hole", func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
}

// Size implements File.
func (o *osFile) Size() (int64, error) {
	info, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Fd implements File.
func (o *osFile) Fd() (uintptr, bool) { return o.f.Fd(), true }

// Close implements File.
func (o *osFile) Close() error { return errors.Join(o.f.Close(), o.direct.close()) }

// call makes a system call on the descriptor and names the file in its error;
// on a closed file it fails with os.ErrClosed.
func (o *osFile) call(op string, call func(fd int) error) error {
	var err error
	closed := o.conn.Control(func(fd uintptr) {
		err = ignoringEINTR(func() error { return call(int(fd)) })
	})
	if closed != nil { // the only failure of Control
		err = os.ErrClosed
	}
	if err != nil {
		return pathError(op, o.f.Name(), err)
	}
	return nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
