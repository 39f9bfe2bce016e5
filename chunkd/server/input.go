package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"strake/internal/errs"
	"strake/proto/frame"
)

const (
	// smallLen is the buffer that every connection has; it holds the requests of
	// a client that sends small ones one at a time.
	smallLen = 512
	// receiveStep is how much of a large payload is received at a time: what a
	// processor's cache holds, see request.sumUp.
	receiveStep = 256 << 10
	// linger is how long a quiet connection keeps a pooled buffer.
	linger = time.Second
)

var (
	errIdle     = errors.New("idle for too long")
	errDraining = errors.New("the server shuts down")
)

// input is the receiving half of a connection, a buffered reader that holds next
// to nothing while its connection is quiet: it reads into a small array until
// that overflows, then into a pooled buffer, which it gives back after a second
// of silence. Only the connection's goroutine uses it; stop may be called by
// others.
type input struct {
	nc       net.Conn
	sock     *socket // over nc
	pool     *buffers
	copied   *atomic.Uint64 // bytes, of payloads, for all connections
	idle     time.Duration
	stopping atomic.Bool

	small    [smallLen]byte
	big      *buffer // nil: small is in use
	r, w     int     // bytes r..w of the buffer in use wait to be consumed
	sparing  bool    // read no further than needed: a large payload should not pass through here
	received time.Time
	deadline time.Time
}

func (in *input) buf() []byte {
	if in.big != nil {
		return in.big.bytes
	}
	return in.small[:]
}

// buffered gives what has been received and not consumed. It is valid until the
// next need.
func (in *input) buffered() []byte { return in.buf()[in.r:in.w] }

// consume drops the first n buffered bytes.
func (in *input) consume(n int) {
	if in.r += n; in.r == in.w {
		in.r, in.w = 0, 0
	}
}

// need returns once at least n bytes are buffered, n at most what a frame's
// header and meta take. The error is io.EOF only between frames.
func (in *input) need(n int) error {
	for in.w-in.r < n {
		in.makeRoom(n)
		end := len(in.buf())
		if in.sparing {
			end = min(end, max(in.r+n, smallLen))
		}
		if err := in.fill(end); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom gives the buffer room for n bytes from r on, and more room when the
// small one turns out too small.
func (in *input) makeRoom(n int) {
	room := len(in.buf())
	if n > room || in.big == nil && in.w == room {
		next := in.pool.get(n)
		in.w = copy(next.bytes, in.buffered())
		in.pool.put(in.big)
		in.r, in.big = 0, next
	} else if in.r+n > room || in.w == room {
		in.w = copy(in.buf(), in.buffered())
		in.r = 0
	}
}

// fill reads once, up to the buffer's offset end. It may give the pooled buffer
// back instead, and read nothing.
func (in *input) fill(end int) error {
	limit := in.idle
	if in.big != nil && in.w == in.r {
		limit = min(linger, limit)
	}
	n, err := in.read(in.buf()[in.w:end], limit)
	if in.w += n; n > 0 {
		return nil
	}
	return in.verdict(err)
}

// read reads once, waits at most for limit, and takes the time of receipt.
func (in *input) read(p []byte, limit time.Duration) (int, error) {
	in.arm(limit)
	n, err := in.sock.Read(p)
	in.received = time.Now()
	return n, err
}

// verdict turns a failed read into the connection's end, or nil: a pooled buffer
// was given back and the wait goes on.
func (in *input) verdict(err error) error {
	switch {
	case err == io.EOF && in.w > in.r:
		return io.ErrUnexpectedEOF
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case in.stopping.Load():
		return errDraining
	case in.big != nil && in.w == in.r:
		in.pool.put(in.big)
		in.big, in.r, in.w = nil, 0, 0
		return nil
	}
	return errIdle
}

// arm sets the deadline of the next read; it moves seldom, because that costs. It
// counts from now: since the last read this goroutine may have waited long for
// something else, at the device's gate above all, which is not the peer's silence.
func (in *input) arm(limit time.Duration) {
	now := time.Now()
	if left := in.deadline.Sub(now); left < limit/2 || left > limit {
		in.deadline = now.Add(limit)
		in.nc.SetReadDeadline(in.deadline)
		if in.stopping.Load() {
			in.nc.SetReadDeadline(now)
		}
	}
}

// stop makes the next read, and one that waits, end with errDraining.
func (in *input) stop() {
	in.stopping.Store(true)
	in.nc.SetReadDeadline(time.Unix(1, 0))
}

// readFull fills p, first with what is buffered, then straight from the socket.
// grown is told of what p holds so far, each time that it is more.
func (in *input) readFull(p []byte, grown func(p []byte)) error {
	n := copy(p, in.buffered())
	in.copied.Add(uint64(n))
	in.consume(n)
	grown(p[:n])
	for n < len(p) {
		m, err := in.read(p[n:min(len(p), n+receiveStep)], in.idle)
		n += m
		grown(p[:n])
		if m == 0 && err != nil {
			if err == io.EOF {
				return io.ErrUnexpectedEOF
			}
			if errors.Is(err, os.ErrDeadlineExceeded) && in.stopping.Load() {
				return errDraining
			}
			return err
		}
	}
	return nil
}

// skip drops n bytes of a payload that nobody wants.
func (in *input) skip(n int) error {
	for n > 0 {
		m := min(n, len(in.buffered()))
		if m == 0 {
			if err := in.need(1); err != nil {
				return noEOF(err)
			}
			continue
		}
		in.consume(m)
		n -= m
	}
	return nil
}

// complete tells whether the next whole request is buffered, so far as it will
// be buffered at all: a large payload is waited for.
func (in *input) complete() bool {
	b := in.buffered()
	if len(b) < frame.HeaderLen {
		return false
	}
	h, err := frame.DecodeRequest(b)
	return err != nil || frame.HeaderLen+h.Meta+h.Payload <= len(b)
}

// release gives the pooled buffer back for good.
func (in *input) release() {
	in.pool.put(in.big)
	in.big, in.r, in.w = nil, 0, 0
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// isMalformed tells errors of the frames from those of the link.
func isMalformed(err error) bool {
	k := errs.KindOf(err)
	return k == errs.Corrupt || k == errs.TooLarge || k == errs.Version || errors.Is(err, io.ErrUnexpectedEOF)
}
