package server

import (
	"strconv"
	"sync"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/internal/errs"
)

// turns is the device's scheduler as the store sees it, for one large unit. Short
// pieces are on their way two at a time, for the reason that quanta of reads are.
type turns struct {
	conn    *conn
	r       *request
	running sync.WaitGroup
	slots   chan struct{} // one for each piece under way; made once

	mu    sync.Mutex // guards all below
	begun bool
	err   error // the first
}

var _ store.Turns = (*turns)(nil)

// atOnce bounds the pieces of a unit that are under way.
const atOnce = 2

// begin starts anew, for the next unit.
func (t *turns) begin(c *conn, r *request) *turns {
	if t.slots == nil {
		t.slots = make(chan struct{}, atOnce)
	}
	t.conn, t.r, t.begun, t.err = c, r, false, nil
	return t
}

// end checks that the store let no piece outlive its unit, whose memory is used
// again from here on.
func (t *turns) end() {
	if n := len(t.slots); n > 0 {
		panic("the store returned from a unit while " + strconv.Itoa(n) + " of its pieces were under way")
	}
}

// Piece implements store.Turns.
func (t *turns) Piece() int { return t.r.dev.Sched.Quantum(true) }

// Turn implements store.Turns.
func (t *turns) Turn(n int, work func() error) error {
	if n == sched.Quantum {
		t.run(n, work)
		return t.failed()
	}
	t.slots <- struct{}{}
	t.running.Go(func() {
		t.run(n, work)
		<-t.slots
	})
	return t.failed()
}

// Wait implements store.Turns.
func (t *turns) Wait() error {
	t.running.Wait()
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
