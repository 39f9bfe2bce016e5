package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// part is one range of a pending write, or what is left of it; for a map writer
// one page.
type part struct {
	r          stripe.Range
	write      WriteID
	ord        uint64
	at         time.Duration     // when it was submitted
	first      layout.BlockCount // of the write's payload, for Write ranges
	last       bool              // the write's last range
	durable    bool              // the write's
	eager      bool              // its appends carry the Durable flag
	relocation bool
}

// waiter is a write that is cut as a whole and waits for seq.
type waiter struct {
	write   WriteID
	seq     layout.Seq
	durable bool
	err     error // cut short: what it ends with
}

// flush is a Flush that waits. Its target is known once the writes before it
// are cut.
type flush struct {
	id     FlushID
	ord    uint64
	target layout.Seq
}

// Submit takes a write in. An error means that it was not taken: Overloaded at
// the memory cap (wait for Resume), TooLarge past MaxWrite, InvalidArgument,
// Closed after Release, or the error that ended the writer.
func (c *Core) Submit(now time.Duration, w Write) error {
	blocks, err := c.admit(w)
	if err != nil {
		return err
	}
	c.ordSubmit++
	eager := w.Durable
	if !w.Relocation {
		c.habit.wrote()
		eager = eager || blocks.Bytes() <= EagerMost && c.alone() && c.habit.flushesEach()
	}
	c.held += blocks.Bytes()
	c.pendBlocks += blocks
	var first layout.BlockCount
	for i, r := range w.Ranges {
		c.pending.push(part{r: r, write: w.ID, ord: c.ordSubmit, at: now, first: first,
			last: i == len(w.Ranges)-1, durable: w.Durable, eager: eager, relocation: w.Relocation})
		if r.Kind == stripe.Write {
			first += layout.BlockCount(r.Count)
		}
	}
	c.step(now)
	return nil
}

// admit checks a write and counts its payload.
func (c *Core) admit(w Write) (blocks layout.BlockCount, err error) {
	switch {
	case c.err != nil:
		return 0, c.err
	case c.releasing:
		return 0, errs.New(errs.Closed, "write", "the volume is being released")
	case c.Full():
		return 0, errs.New(errs.Overloaded, "write", "%d bytes wait to be flushed, the cap is %d", c.held, c.cfg.MemoryCap)
	case len(w.Ranges) == 0 || len(w.Ranges) > stripe.MaxRanges:
		return 0, errs.New(errs.InvalidArgument, "write", "%d ranges", len(w.Ranges))
	}
	for _, r := range w.Ranges {
		if r.Count == 0 || r.Kind < stripe.Write || r.Kind > stripe.Zero || uint64(r.Start)+uint64(r.Count) > layout.MaxVolumeBytes/layout.BlockSize {
			return 0, errs.New(errs.InvalidArgument, "write", "range of %d blocks at block %d, kind %d", r.Count, r.Start, r.Kind)
		}
		if r.Kind == stripe.Write {
			blocks += layout.BlockCount(r.Count)
		}
	}
	if blocks.Bytes() > c.cfg.MaxWrite() {
		return 0, errs.New(errs.TooLarge, "write", "%d bytes, at most %d go at once", blocks.Bytes(), c.cfg.MaxWrite())
	}
	return blocks, nil
}

// Flush asks that all writes submitted so far become flushed.
func (c *Core) Flush(now time.Duration, id FlushID) {
	if c.err != nil {
		c.do(Action{Kind: FlushDone, Flush: id, Err: c.err})
		return
	}
	c.habit.flushed()
	c.flushes.push(flush{id: id, ord: c.ordSubmit})
	c.unresolved++
	c.resolve()
	c.step(now)
}

// FlushAcked asks that all writes acknowledged so far become flushed. It makes
// no stripe of what is pending and waits for none in flight, so that many
// writers who flush do not cut each other's stripes short.
func (c *Core) FlushAcked(now time.Duration, id FlushID) {
	c.habit.flushed()
	if c.err != nil || c.acked <= c.flushed {
		c.do(Action{Kind: FlushDone, Flush: id, Err: c.err})
		return
	}
	c.ackFlushes.push(flush{id: id, target: c.acked})
	c.step(now)
}

// alone tells whether nothing waits to be flushed.
func (c *Core) alone() bool { return c.pending.len() == 0 && c.log.len() == 0 }

// resolve gives flushes their target as soon as all writes before them are cut.
func (c *Core) resolve() {
	for c.unresolved > 0 {
		f := c.flushes.at(c.flushes.len() - c.unresolved)
		if f.ord > c.ordCut {
			return
		}
		f.target = c.lastSeq
		c.unresolved--
	}
}

// cutWhole notes that the last block of a write is cut.
func (c *Core) cutWhole(p part, seq layout.Seq, err error) {
	c.begun = false
	c.ordCut = p.ord
	if !c.mapped {
		c.acks.push(waiter{p.write, seq, p.durable, err})
	}
}

// ackWrites answers the writes whose stripes are acknowledged; durable ones
// wait on for the flush.
func (c *Core) ackWrites() {
	for c.acks.len() > 0 && c.acks.at(0).seq <= c.acked {
		w := c.acks.pop()
		if w.durable {
			c.durables.push(w)
			continue
		}
		c.do(Action{Kind: WriteDone, Write: w.write, Err: w.err})
	}
}

// flushWaiters answers durable writes and flushes up to the flushed seq.
func (c *Core) flushWaiters() {
	for c.durables.len() > 0 && c.durables.at(0).seq <= c.flushed {
		w := c.durables.pop()
		c.do(Action{Kind: WriteDone, Write: w.write, Err: w.err})
	}
	for c.flushes.len() > c.unresolved && c.flushes.at(0).target <= c.flushed {
		c.do(Action{Kind: FlushDone, Flush: c.flushes.pop().id})
	}
	for c.ackFlushes.len() > 0 && c.ackFlushes.at(0).target <= c.flushed {
		c.do(Action{Kind: FlushDone, Flush: c.ackFlushes.pop().id})
	}
}

// refuse answers writes that are not cut with err, in order, all of them or up to
// the first that is bare. One that is cut in part waits for what is cut of it, so
// that nothing refers to its buffers after its answer if it is durable.
func (c *Core) refuse(err error, all bool) {
	for whole := true; c.pending.len() > 0; {
		if whole && !all && c.bare() {
			break
		}
		p := c.pending.pop()
		if whole = p.last; p.r.Kind == stripe.Write {
			c.held -= layout.BlockCount(p.r.Count).Bytes()
			c.pendBlocks -= layout.BlockCount(p.r.Count)
		}
		switch {
		case !p.last:
		case c.begun:
			c.cutWhole(p, c.lastSeq, err)
		default:
			c.do(Action{Kind: WriteDone, Write: p.write, Err: err})
		}
		c.ordCut = p.ord
	}
	c.ackWrites()
	c.resolve()
	c.flushWaiters()
}

// bare tells whether the first pending write, or what is left of it, has no
// payload: a discard takes no room.
func (c *Core) bare() bool {
	if c.mapped || c.pending.len() == 0 {
		return false
	}
	for i := 0; i < c.pending.len(); i++ {
		if p := c.pending.at(i); p.r.Kind == stripe.Write {
			return false
		} else if p.last {
			return true
		}
	}
	return true
}
