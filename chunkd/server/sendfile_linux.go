package server

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileSender sends parts of files over a connection from the page cache, with
// sendfile. One send at a time.
type fileSender struct {
	raw  syscall.RawConn
	step func(fd uintptr) bool // made once, so that a send allocates nothing

	// Of the send under way:
	fd   int
	off  int64
	left int
	err  error
}

// newFileSender gives nil for a connection that is not a bare TCP socket.
func newFileSender(nc net.Conn) *fileSender {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &fileSender{raw: raw}
	s.step = s.some
	return s
}

// send sends n bytes of a file from off on. A file that ends before is an error:
// the reply that promised the bytes can't be kept.
func (s *fileSender) send(fd uintptr, off int64, n int) error {
	s.fd, s.off, s.left, s.err = int(fd), off, n, nil
	if err := s.raw.Write(s.step); err != nil {
		return err
	}
	return s.err
}

// some sends what the socket takes; false when it takes no more now.
func (s *fileSender) some(socket uintptr) bool {
	for s.left > 0 {
		n, err := unix.Sendfile(int(socket), s.fd, &s.off, s.left)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return false
		case err != nil:
			s.err = err
			return true
		case n == 0:
			s.err = io.ErrUnexpectedEOF
			return true
		default:
			s.left -= n
		}
	}
	return true
}
