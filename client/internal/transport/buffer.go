package transport

// fill reads until the buffer holds n unread bytes.
func (c *conn) fill(n int) error {
	for r := &c.recv; r.hi-r.lo < n; {
		r.need = n
		r.room(n)
		if err := c.more(); err != nil {
			return err
		}
	}
	return nil
}

// readPayload reads the rest of a payload: first what is in the buffer.
func (c *conn) readPayload() error {
	for r := &c.recv; r.left > 0; {
		if r.lo < r.hi {
			c.takeBuffered()
			continue
		}
		r.lo, r.hi, r.need = 0, 0, 0
		if err := c.more(); err != nil {
			return err
		}
	}
	return nil
}

// more waits until some bytes came.
func (c *conn) more() error {
	if err := c.link.receive(c.readStep); err != nil {
		return err
	}
	return c.recv.err
}

// readOnce makes one system call; false: nothing was there, wait.
func (c *conn) readOnce() bool {
	r := &c.recv
	r.room(0)
	r.mu.Lock()
	r.pieces = r.destination(r.pieces[:0])
	placed := total(r.pieces)
	r.pieces = append(r.pieces, r.buf[r.hi:c.readLimit()])
	n, err := c.link.readv(r.pieces)
	clear(r.pieces)
	c.counters.reads.Add(1)
	if err != nil {
		n = 0
	}
	r.skip(min(n, placed))
	r.mu.Unlock()
	c.counters.received.Add(uint64(n))
	r.hi += n - min(n, placed)
	if err == errAgain {
		if r.hi == 0 && r.left == 0 {
			r.release()
		}
		return false
	}
	r.err = err
	return true
}

// readLimit is how far the buffer is filled.
func (c *conn) readLimit() int {
	r := &c.recv
	if calls := c.calls.Load(); calls > 0 && c.inBytes.Load()/calls >= largeReply && !(r.left > 0 && r.throw) {
		return min(len(r.buf), max(r.hi+readAhead, r.lo+r.need))
	}
	return len(r.buf)
}

// takeBuffered moves payload from the buffer to where it belongs.
func (c *conn) takeBuffered() {
	r := &c.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.buf[r.lo:min(r.hi, r.lo+r.left)]
	r.lo += len(have)
	r.pieces = r.destination(r.pieces[:0])
	if len(r.pieces) == 0 {
		r.left -= len(have)
		return
	}
	n := 0
	for _, p := range r.pieces {
		n += copy(p, have[n:])
	}
	clear(r.pieces)
	r.skip(n)
	r.lo -= len(have) - n // more pieces than one call takes
	c.counters.copied.Add(uint64(n))
}

// destination appends the caller's buffers that the rest of the payload goes
// to, none when it is thrown away. mu is held.
func (r *receiver) destination(pieces [][]byte) [][]byte {
	if r.left == 0 || r.throw || r.flight.call == nil {
		return pieces
	}
	left, at := r.left, r.at
	for _, p := range r.flight.call.Into[r.piece:] {
		if left == 0 || len(pieces) == maxPieces-1 {
			break
		}
		p = p[at:min(len(p), at+left)]
		pieces = append(pieces, p)
		left, at = left-len(p), 0
	}
	return pieces
}

// skip counts n bytes as read into the caller's buffers. mu is held.
func (r *receiver) skip(n int) {
	r.left -= n
	for n > 0 {
		size := len(r.flight.call.Into[r.piece]) - r.at
		if n < size {
			r.at += n
			return
		}
		n -= size
		r.piece, r.at = r.piece+1, 0
	}
}

// room makes the buffer, or moves or replaces it so that n unread bytes fit.
// Only the header's caps bound n.
func (r *receiver) room(n int) {
	if r.buf == nil {
		r.pooled = buffers.Get().(*[]byte)
		r.buf = *r.pooled
	}
	if r.lo == r.hi {
		r.lo, r.hi = 0, 0
	}
	if r.lo+n <= len(r.buf) && r.hi < len(r.buf) {
		return
	}
	unread := r.buf[r.lo:r.hi]
	if n <= len(r.buf) {
		r.lo, r.hi = 0, copy(r.buf, unread)
		return
	}
	larger := make([]byte, n)
	n = copy(larger, unread)
	r.release()
	r.buf, r.lo, r.hi = larger, 0, n
}

// release gives the buffer back.
func (r *receiver) release() {
	if r.pooled != nil {
		buffers.Put(r.pooled)
	}
	r.pooled, r.buf, r.lo, r.hi = nil, nil, 0, 0
}
