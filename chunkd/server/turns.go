package server

import (
	"sync"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/internal/errs"
)

// turns is the device's scheduler as the store sees it, for one large unit. Short
// pieces are on their way two at a time, for the reason that quanta of reads are: a
// helper, which lives as long as the unit, takes every piece that it is free for, and
// the store's own goroutine the others.
type turns struct {
	conn    *conn
	r       *request
	running sync.WaitGroup // of the helper
	pieces  chan piecework // to the helper; made once
	helped  bool           // there is one

	mu    sync.Mutex // guards all below
	begun bool
	err   error // the first
}

var _ store.Turns = (*turns)(nil)

// piecework is what the helper is handed; without work it ends.
type piecework struct {
	n    int
	work func() error
}

// begin starts anew, for the next unit.
func (t *turns) begin(c *conn, r *request) *turns {
	if t.pieces == nil {
		t.pieces = make(chan piecework)
	}
	t.conn, t.r, t.begun, t.err, t.helped = c, r, false, nil, false
	return t
}

// end checks that the store let no piece outlive its unit, whose memory is used
// again from here on.
func (t *turns) end() {
	if t.helped {
		panic("the store returned from a unit without waiting for its pieces")
	}
}

// Piece implements store.Turns.
func (t *turns) Piece() int { return t.r.dev.Sched.Quantum(true) }

// Turn implements store.Turns.
func (t *turns) Turn(n int, work func() error) error {
	if n < sched.Quantum && !t.helped {
		t.helped = true
		t.running.Go(t.help)
	}
	if t.helped {
		select {
		case t.pieces <- piecework{n, work}:
			return t.failed()
		default: // it has one
		}
	}
	t.run(n, work)
	return t.failed()
}

// help does what it is handed until there is no more.
func (t *turns) help() {
	for p := <-t.pieces; p.work != nil; p = <-t.pieces {
		t.run(p.n, p.work)
	}
}

// Wait implements store.Turns.
func (t *turns) Wait() error {
	if t.helped {
		t.pieces <- piecework{}
		t.running.Wait()
		t.helped = false
	}
	return t.failed()
}

func (t *turns) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// run does one piece in its turn. The first stands for the operation and keeps its
// deadline; a unit that was begun is ended.
func (t *turns) run(n int, work func() error) {
	r := t.r
	tag := r.tag(true, n)
	t.mu.Lock()
	tag.Part, t.begun = t.begun, true
	t.mu.Unlock()
	if tag.Part {
		tag.Deadline = time.Time{}
	}
	var err error
	bad := r.dev.Sched.Do(t.conn.srv.ctx, tag, func() {
		from := time.Now()
		err = work()
		t.took(n, from, !tag.Part)
	})
	if bad != nil {
		err = errs.Wrap(bad, "%v", r.Kind)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// took adds a piece's time to the request's.
func (t *turns) took(n int, from time.Time, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first {
		t.r.reply.Queue = from.Sub(t.r.received)
	}
	took := time.Since(from)
	t.r.reply.Service += took
	t.r.dev.writes.measured(n, took)
}
