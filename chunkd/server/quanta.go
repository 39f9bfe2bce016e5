package server

import (
	"sync"

	"strake/chunkd/sched"
	"strake/internal/layout"
	"strake/proto/frame"
)

// A large read is cut into quanta, each with a turn of its own at the device. Two of
// them are on their way at once: with one, a device whose quanta are short would be
// idle from the end of one to the begin of the next, a third of the time on a slow
// one. The request's own goroutine takes every quantum that comes its way; beside
// it, while it is worth it, runs a second.

// quanta gives the next quantum of a read to whoever asks.
type quanta struct {
	mu     sync.Mutex // guards all below
	pieces []piece    // the request's
	ranges []frame.ReadRange
	offset layout.ShardOffset // of what is not given yet of the first piece
	left   []byte             // of that piece
	rest   uint32             // bytes of the first range that lie in later pieces
	err    error              // the first; nothing is given after it
}

// begin starts anew; the pieces are cut from the ranges in order, none over two.
func (q *quanta) begin(pieces []piece, ranges []frame.ReadRange) {
	q.pieces, q.ranges, q.err, q.left, q.rest = pieces, ranges, nil, nil, 0
}

// next gives the next quantum of at most n bytes; false: there is none.
func (q *quanta) next(n int) (offset layout.ShardOffset, dst []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return 0, nil, false
	}
	if len(q.left) == 0 {
		if len(q.pieces) == 0 {
			return 0, nil, false
		}
		if q.rest == 0 {
			q.offset, q.rest = q.ranges[0].Offset, q.ranges[0].Length
			q.ranges = q.ranges[1:]
		}
		q.left, q.pieces = q.pieces[0].bytes, q.pieces[1:]
		q.rest -= uint32(len(q.left))
	}
	n = min(n, len(q.left))
	offset, dst = q.offset, q.left[:n]
	q.offset, q.left = q.offset+layout.ShardOffset(n), q.left[n:]
	return offset, dst, true
}

// fail ends the read with an error; the first one counts.
func (q *quanta) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
}

// end gives the error, and lets go of the buffers.
func (q *quanta) end() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pieces, q.ranges, q.left = nil, nil, nil
	return q.err
}

// fillPieces gives the ranges buffers of a piece each and reads them.
func (c *conn) fillPieces(r *request, out *batch) error {
	for _, g := range r.read.Ranges {
		for left := g.Length; left > 0; {
			n := min(left, sched.Quantum)
			buf := c.srv.pool.get(int(n))
			r.pieces = append(r.pieces, piece{buf.bytes[:n], buf})
			left -= n
		}
	}
	r.quanta.begin(r.pieces, r.read.Ranges)
	if quantum := r.dev.Sched.Quantum(false); quantum < sched.Quantum && r.read.Bytes() > quantum {
		r.beside.running.Go(func() { c.fillBeside(r) })
	}
	c.fillQuanta(r, out)
	r.beside.running.Wait()
	return r.quanta.end()
}

// fillQuanta reads quanta as long as there are any. When a turn does not come at
// once, the replies that were made before go out.
func (c *conn) fillQuanta(r *request, out *batch) {
	for {
		quantum := r.dev.Sched.Quantum(false)
		if out.bytes > 0 && !r.free(false, quantum) {
			if err := c.flush(out); err != nil {
				r.quanta.fail(err)
				return
			}
		}
		offset, dst, ok := r.quanta.next(quantum)
		if !ok {
			return
		}
		r.one[0] = frame.ReadRange{Offset: offset, Length: uint32(len(dst))}
		r.part = frame.ReadBody{Shard: r.read.Shard, Ranges: r.one[:]}
		if err := c.readRun(r, dst); err != nil {
			r.quanta.fail(err)
			return
		}
	}
}

// beside is the second goroutine of a large read. Its fields are its own.
type beside struct {
	running sync.WaitGroup
	work    func() // made once
	one     [1]frame.ReadRange
	dst     []byte
	err     error
}

// fillBeside reads quanta beside the request's own goroutine.
func (c *conn) fillBeside(r *request) {
	b := &r.beside
	defer func() { b.dst = nil }()
	for {
		offset, dst, ok := r.quanta.next(r.dev.Sched.Quantum(false))
		if !ok {
			return
		}
		b.one[0], b.dst = frame.ReadRange{Offset: offset, Length: uint32(len(dst))}, dst
		tag := r.tag(false, len(dst))
		tag.Part = true
		err := r.dev.Sched.Do(c.srv.ctx, tag, b.work)
		if err == nil {
			err = b.err
		}
		if err != nil {
			r.quanta.fail(err)
			return
		}
	}
}

// readBeside is its work: it runs in the device's turn.
func (r *request) readBeside() {
	b := &r.beside
	if b.err = r.permitted(); b.err == nil {
		b.err = r.readInto(b.one[:], b.dst)
	}
}
