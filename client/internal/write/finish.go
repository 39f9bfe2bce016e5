package write

import (
	"time"

	"strake/internal/errs"
)

// Release flushes, seals all and ends in Released. No write is taken any more.
func (c *Core) Release(now time.Duration) {
	c.releasing = true
	c.step(now)
}

// finish ends a release: once all is flushed, segments with stripes are
// sealed; unused ones go back with the lease.
func (c *Core) finish(now time.Duration) {
	if !c.releasing || c.pending.len() > 0 || c.log.len() > 0 || c.err != nil {
		return
	}
	for len(c.open) > 0 {
		c.close(c.open[0], full)
	}
	c.sealAll(now)
	if len(c.closed) > 0 || c.allocation != nil || c.cold.allocation != nil {
		return
	}
	c.err = errClosed
	c.do(Action{Kind: Released, Seq: c.lastSeq})
}

// LeaseLost ends the writer: another one took the volume, or the session is gone.
func (c *Core) LeaseLost(_ time.Duration, err error) {
	if c.err == nil {
		c.end(errs.As(err, errs.LeaseLost, "write"))
	}
}

// end answers everything with err: the writer has ended.
func (c *Core) end(err error) {
	if err == nil {
		err = errs.LeaseLost
	}
	c.err = err
	for _, q := range []*queue[waiter]{&c.durables, &c.acks} {
		for q.len() > 0 {
			w := q.pop()
			c.do(Action{Kind: WriteDone, Write: w.write, Err: err})
		}
	}
	for c.pending.len() > 0 {
		if p := c.pending.pop(); p.last && !c.mapped {
			c.do(Action{Kind: WriteDone, Write: p.write, Err: err})
		}
	}
	for _, q := range []*queue[flush]{&c.flushes, &c.ackFlushes} {
		for q.len() > 0 {
			c.do(Action{Kind: FlushDone, Flush: q.pop().id, Err: err})
		}
	}
	c.unresolved, c.pendBlocks = 0, 0
	c.do(Action{Kind: Fail, Err: err})
}

// errClosed is what a released writer answers.
var errClosed = errs.New(errs.Closed, "write", "the volume was released")
