package server

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPieces is how many buffers one system call takes (IOV_MAX).
const maxPieces = 1024

// socket makes a connection's transfers. Reads and writes of a socket that never
// wait are made without telling the Go scheduler: telling it wakes its watchdog
// thread when the process was idle, as it is between two small requests, and lets
// it take the processor away in the middle of a large copy. Waiting is left to the
// poller. Other streams than sockets are used as they are.
//
// One goroutine reads and one writes at a time.
type socket struct {
	nc    net.Conn
	raw   syscall.RawConn // nil: not a socket
	calls *atomic.Uint64  // system calls of all sockets, counted

	// The call under way, each way.
	in, out  []byte
	pieces   net.Buffers
	vector   *vector
	read     moved
	written  moved
	readFn   func(fd uintptr) bool // made once, so that a call allocates nothing
	writeFn  func(fd uintptr) bool
	writevFn func(fd uintptr) bool
}

// moved is what became of a call.
type moved struct {
	n   int
	err error
}

// vector is the table of buffers of one system call. An idle connection has none.
type vector [maxPieces]unix.Iovec

var vectors = sync.Pool{New: func() any { return new(vector) }}

func newSocket(nc net.Conn, calls *atomic.Uint64) *socket {
	s := &socket{nc: nc, calls: calls}
	if c, ok := nc.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn()
	}
	s.readFn, s.writeFn, s.writevFn = s.tryRead, s.tryWrite, s.tryWritev
	return s
}

// Read reads once, as net.Conn does.
func (s *socket) Read(p []byte) (int, error) {
	if s.raw == nil || len(p) == 0 {
		return s.nc.Read(p)
	}
	s.in, s.read = p, moved{}
	err := s.raw.Read(s.readFn)
	s.in = nil
	switch {
	case err != nil:
		return 0, err
	case s.read.err != nil:
		return 0, s.read.err
	case s.read.n == 0:
		return 0, io.EOF
	}
	return s.read.n, nil
}

// tryRead is false when there is nothing to read yet.
func (s *socket) tryRead(fd uintptr) bool {
	s.calls.Add(1)
	n, errno := transfer(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(s.in)), len(s.in))
	s.read = moved{n, asError(errno)}
	if n > 0 {
		received(fd)
	}
	return errno != unix.EAGAIN
}

// Write writes all of p.
func (s *socket) Write(p []byte) error {
	if s.raw == nil {
		_, err := s.nc.Write(p)
		return err
	}
	s.out, s.written = p, moved{}
	err := s.raw.Write(s.writeFn)
	s.out = nil
	if err != nil {
		return err
	}
	return s.written.err
}

// tryWrite is false while the socket has no room for the rest.
func (s *socket) tryWrite(fd uintptr) bool {
	sends(fd)
	for len(s.out) > 0 {
		s.calls.Add(1)
		n, errno := transfer(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(s.out)), len(s.out))
		if errno != 0 {
			s.written.err = asError(errno)
			return errno != unix.EAGAIN
		}
		s.out = s.out[n:]
	}
	s.written.err = nil
	return true
}

// Writev writes all pieces, and uses their list up.
func (s *socket) Writev(pieces net.Buffers) error {
	if s.raw == nil {
		_, err := pieces.WriteTo(s.nc)
		return err
	}
	s.pieces, s.vector, s.written = pieces, vectors.Get().(*vector), moved{}
	err := s.raw.Write(s.writevFn)
	vectors.Put(s.vector)
	s.pieces, s.vector = nil, nil
	if err != nil {
		return err
	}
	return s.written.err
}

func (s *socket) tryWritev(fd uintptr) bool {
	sends(fd)
	for len(s.pieces) > 0 {
		count := 0
		for _, p := range s.pieces[:min(len(s.pieces), maxPieces)] {
			if len(p) > 0 {
				s.vector[count].Base = unsafe.SliceData(p)
				s.vector[count].SetLen(len(p))
				count++
			}
		}
		s.calls.Add(1)
		n, errno := transfer(unix.SYS_WRITEV, fd, unsafe.Pointer(s.vector), count)
		clear(s.vector[:count]) // it keeps nobody's memory alive
		if errno != 0 {
			s.written.err = asError(errno)
			return errno != unix.EAGAIN
		}
		s.advance(n)
	}
	s.written.err = nil
	return true
}

// advance takes n written bytes, and empty pieces, off the list.
func (s *socket) advance(n int) {
	for len(s.pieces) > 0 && n >= len(s.pieces[0]) {
		n -= len(s.pieces[0])
		s.pieces[0] = nil
		s.pieces = s.pieces[1:]
	}
	if n > 0 {
		s.pieces[0] = s.pieces[0][n:]
	}
}

// transfer is one system call on a socket that does not block.
func transfer(trap, fd uintptr, p unsafe.Pointer, n int) (int, syscall.Errno) {
	for {
		moved, _, errno := unix.RawSyscall(trap, fd, uintptr(p), uintptr(n))
		if errno != unix.EINTR {
			return int(moved), errno
		}
	}
}

func asError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
