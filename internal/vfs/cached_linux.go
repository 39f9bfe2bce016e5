package vfs

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cachedMost bounds, in bytes, a read that is tried from the page cache: for as
// long as it takes to copy them the Go scheduler knows of no system call.
const cachedMost = 256 << 10

// cached reads what is in the page cache (RWF_NOWAIT). Such a call never waits for
// the device, so the scheduler is not told of it: telling it wakes its watchdog
// thread for each small read. The zero value is ready.
type cached struct {
	none atomic.Bool // the file system can't; not asked again
}

// cachedRead is one call, kept for reuse so that none allocates.
type cachedRead struct {
	iov   unix.Iovec
	off   int64
	n     int
	errno syscall.Errno
	call  func(fd uintptr)
}

var cachedReads = sync.Pool{New: func() any {
	r := &cachedRead{}
	r.call = r.try
	return r
}}

func (r *cachedRead) try(fd uintptr) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PREADV2, fd, uintptr(unsafe.Pointer(&r.iov)), 1, uintptr(r.off), 0, unix.RWF_NOWAIT)
	if r.n, r.errno = int(n), errno; errno != 0 {
		r.n = 0
	}
}

// readAt reads as much of p as is in the page cache and gives its length: 0 when
// there is nothing, or on any error, which the read proper will meet as well.
func (c *cached) readAt(conn syscall.RawConn, p []byte, off int64) int {
	if len(p) == 0 || len(p) > cachedMost || off < 0 || c.none.Load() {
		return 0
	}
	r := cachedReads.Get().(*cachedRead)
	defer cachedReads.Put(r)
	r.iov.Base = unsafe.SliceData(p)
	r.iov.SetLen(len(p))
	r.off, r.n, r.errno = off, 0, 0
	_ = conn.Control(r.call) // fails on a closed file alone
	r.iov.Base = nil
	switch r.errno {
	case unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL:
		c.none.Store(true)
	}
	return r.n
}
