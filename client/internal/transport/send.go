package transport

import (
	"sync"

	"strake/internal/errs"
)

// sendTurn bounds how many system calls a submitter makes for others before a
// goroutine of the connection takes over.
const sendTurn = 8

// sender is the writing half of a connection.
//
// Story of the writer. Whoever submits while nobody writes becomes the writer
// and writes from its own goroutine: a lone call costs no hop. Others leave
// their calls in the queue; the writer takes all of them at once, so that those
// that wait share one system call. When the socket is full, or after sendTurn
// calls for others, the writer hands over to a goroutine that waits for room
// and ends when the queue is empty.
type sender struct {
	mu     sync.Mutex // held across one writev, which never waits: between two, Cancel may take a frame out
	batch  []*flight  // frames being written, in order; guarded by mu
	pieces [][]byte   // scratch; guarded by mu
	turns  int        // of the present writer
	state  sendState  // of the present writer: what its last attempt came to
	err    error      // with sendFailed
}

type sendState uint8

const (
	sendIdle    sendState = iota // nothing is left to write, and this writer's time is over
	sendMore                     // some was written
	sendBlocked                  // no room
	sendFailed
)

// write is run by the goroutine that has set c.writing and drawn the ticket.
func (c *conn) write(ticket uint64) {
	s := &c.send
	s.turns, s.state = 0, sendBlocked
	if c.link.direct() {
		if err := c.link.send(c.tryStep); err != nil {
			c.fail(lost(c.addr, err))
			return
		}
	}
	switch c.outcome(ticket) {
	case sendFailed:
		c.fail(lost(c.addr, s.err))
	case sendMore, sendBlocked:
		c.handOver(ticket)
	}
}

// outcome is what a writer's last attempt came to. After idle somebody else may
// be the writer already, so the ticket is looked at first.
func (c *conn) outcome(ticket uint64) sendState {
	c.mu.Lock()
	mine := c.writing && c.ticket == ticket
	c.mu.Unlock()
	if !mine {
		return sendIdle
	}
	return c.send.state
}

// handOver starts the goroutine that goes on writing.
func (c *conn) handOver(ticket uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return // c.writing stays set: nobody writes any more
	}
	c.writers.Go(func() {
		err := c.link.send(c.waitStep)
		if err == nil && c.outcome(ticket) == sendFailed {
			err = c.send.err
		}
		if err != nil {
			c.fail(lost(c.addr, err))
		}
	})
}

// tryOnce writes without ever waiting.
func (c *conn) tryOnce() bool {
	for c.attempt() == sendMore && c.send.turns < sendTurn {
		c.send.turns++
	}
	return true
}

// waitOnce writes until there is no room (false) or nothing left to do. A link
// with a buffer of its own empties it before the next attempt.
func (c *conn) waitOnce() bool {
	for {
		switch c.attempt() {
		case sendBlocked:
			return false
		case sendMore:
			if !c.link.direct() {
				return false
			}
		case sendIdle, sendFailed:
			return true
		}
	}
}

// attempt makes at most one system call.
func (c *conn) attempt() sendState {
	s := &c.send
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.refill() {
		return sendIdle
	}
	s.pieces = s.pieces[:0]
	for i := 0; i < len(s.batch) && len(s.pieces) < maxPieces; i++ {
		s.pieces = s.batch[i].unsent(s.pieces)
	}
	n, err := c.link.writev(s.pieces)
	clear(s.pieces)
	c.counters.writes.Add(1)
	c.counters.sent.Add(uint64(n))
	s.advance(n)
	switch {
	case err == errAgain:
		s.state = sendBlocked
	case err != nil:
		s.state, s.err = sendFailed, err
	default:
		s.state = sendMore
	}
	return s.state
}

// refill takes over the queue when the batch is written. False: both are empty,
// and whoever submits next is the writer.
func (c *conn) refill() bool {
	s := &c.send
	if len(s.batch) > 0 {
		return true
	}
	c.mu.Lock()
	s.batch, c.queue = c.queue, s.batch
	if len(s.batch) == 0 {
		c.writing = false
	}
	c.mu.Unlock()
	for _, f := range s.batch {
		f.encode()
		f.state.Store(sending)
	}
	return len(s.batch) > 0
}

// advance takes written frames off the batch.
func (s *sender) advance(n int) {
	gone := 0
	for _, f := range s.batch {
		n = f.advance(n)
		if !f.written() {
			break
		}
		f.state.Store(sent)
		gone++
	}
	left := copy(s.batch, s.batch[gone:])
	clear(s.batch[left:])
	s.batch = s.batch[:left]
}

// drop takes a flight out of a list.
func drop(list []*flight, f *flight) []*flight {
	for i := range list {
		if list[i] == f {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = nil
			return list[:len(list)-1]
		}
	}
	return list
}

// lost is the error of a connection that broke.
func lost(addr string, err error) error {
	return errs.As(err, errs.Unavailable, "connection to %s", addr)
}
