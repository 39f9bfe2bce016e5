package transport

import (
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPieces is how many buffers one system call takes (IOV_MAX).
const maxPieces = 1024

// socket is a link over a socket: writev and readv straight from and into the
// callers' buffers.
type socket struct {
	conn net.Conn
	raw  syscall.RawConn

	// The sending and the receiving goroutine each have their own half. The
	// descriptor is valid inside a step only.
	out, in half

	sendFn, receiveFn func(fd uintptr) bool // made once, so that a call allocates nothing
}

type half struct {
	fd   uintptr
	step func() bool
	iov  [maxPieces]unix.Iovec
}

func newSocket(c net.Conn, s syscall.Conn) (*socket, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	l := &socket{conn: c, raw: raw}
	l.sendFn, l.receiveFn = l.out.run, l.in.run
	return l, nil
}

func (h *half) run(fd uintptr) bool {
	h.fd = fd
	return h.step()
}

func (l *socket) direct() bool { return true }

func (l *socket) send(step func() bool) error {
	l.out.step = step
	return l.raw.Write(l.sendFn)
}

func (l *socket) receive(step func() bool) error {
	l.in.step = step
	return l.raw.Read(l.receiveFn)
}

func (l *socket) writev(pieces [][]byte) (int, error) { return l.out.transfer(unix.SYS_WRITEV, pieces) }

func (l *socket) readv(pieces [][]byte) (int, error) {
	n, err := l.in.transfer(unix.SYS_READV, pieces)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

func (l *socket) Close() error { return l.conn.Close() }

// transfer is one system call, which never waits: so the scheduler is not told of
// it, which would wake its watchdog thread for each small call, and take the
// processor away from a large one. The table of buffers is cleared after it, so
// that it keeps nobody's memory alive.
func (h *half) transfer(trap uintptr, pieces [][]byte) (int, error) {
	n := 0
	for _, p := range pieces[:min(len(pieces), maxPieces)] {
		if len(p) > 0 {
			h.iov[n].Base = unsafe.SliceData(p)
			h.iov[n].SetLen(len(p))
			n++
		}
	}
	defer clear(h.iov[:n])
	for {
		moved, _, errno := unix.RawSyscall(trap, h.fd, uintptr(unsafe.Pointer(&h.iov[0])), uintptr(n))
		switch errno {
		case 0:
			return int(moved), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, errAgain
		default:
			return 0, errno
		}
	}
}
