package write

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Core is the writer of one volume. Not safe for concurrent use: the shell
// holds a mutex around each call and the Take that follows it.
type Core struct {
	cfg    Config
	mapped bool // writes map pages for a MapWriter
	out    []Action
	err    error // why the writer ended; nil while it works

	// What waits to be cut, and who waits for what.
	pending    queue[part]
	pendBlocks layout.BlockCount
	begun      bool   // a part of the first pending write is cut
	ordSubmit  uint64 // number of the last write submitted
	ordCut     uint64 // number of the last write that is cut (or refused) as a whole
	acks       queue[waiter]
	durables   queue[waiter]
	flushes    queue[flush]
	ackFlushes queue[flush] // of what is acknowledged; ascending targets
	unresolved int          // flushes at the end of the queue whose target is not known
	habit      habit

	// The log: stripes that are cut and not flushed, flushed+1 to lastSeq.
	log                     queue[*entry]
	flushed, acked, lastSeq layout.Seq
	flight                  []*entry      // not answered by all participants
	moving                  queue[*entry] // displaced, ascending by seq
	held                    int64         // bytes pending and not flushed
	freed                   bool          // a place in flight came free since the last cut

	// Segments, by state; each in the order granted or opened.
	spares, open, closed []*segment
	peers                peers
	limitedSince         time.Duration // the open segments limit the writer since; -1: they don't
	need                 bool          // no segment takes the next stripe
	noRoom               bool          // the last segment that was needed was refused for want of space
	cold                 cold
	needLength           layout.ShardOffset
	lastLength           layout.ShardOffset // of the last grant
	lastK                uint8              // of the last grant
	allocation           *Allocation        // under way
	asking               backoff            // for what is needed
	askingAhead          backoff            // for what isn't yet
	requests             RequestID
	rate                 rate

	// Syncs.
	syncID   SyncID
	round    []*device  // whose syncs are not answered
	selfGoal layout.Seq // to be flushed by our own wish

	// Moves.
	moves      int           // since the last progress
	failures   int           // of servers, so far
	pauseUntil time.Duration // nothing is placed before
	moveAt     time.Duration // no move by time-out before
	scanAt     time.Duration // next look for late participants

	waiting    bool // Wait was said
	releasing  bool
	unrecorded bool // map: stripes that no recorded root names yet

	freeEntries []*entry
	freeStripes []*Stripe
	freeSyncs   []*Sync
}

// New makes a core that writes under cfg.Epoch after cfg.LastSeq.
func New(cfg Config) *Core {
	cfg = cfg.withDefaults()
	return &Core{cfg: cfg, flushed: cfg.LastSeq, acked: cfg.LastSeq, lastSeq: cfg.LastSeq, limitedSince: -1}
}

// Take appends the actions since the last Take to dst. Call it after each input.
func (c *Core) Take(dst []Action) []Action {
	dst = append(dst, c.out...)
	clear(c.out)
	c.out = c.out[:0]
	return dst
}

// Acked is the last acknowledged seq. Frames carry it.
func (c *Core) Acked() layout.Seq { return c.acked }

// FlushedSeq is the last flushed seq. Frames carry it.
func (c *Core) FlushedSeq() layout.Seq { return c.flushed }

// LastSeq is the last seq that was cut.
func (c *Core) LastSeq() layout.Seq { return c.lastSeq }

// Held is the payload in bytes that the shell must keep: pending and not flushed.
func (c *Core) Held() int64 { return c.held }

// Full tells whether Submit would refuse for memory.
func (c *Core) Full() bool { return c.held >= c.cfg.MemoryCap }

// Free hands a Stripe's memory back for reuse: optional, once the shell has
// dealt with the Flushed that covers it and keeps no reference to it.
func (c *Core) Free(s *Stripe) {
	if !s.shared && len(c.freeStripes) < 2*c.cfg.InFlight {
		c.freeStripes = append(c.freeStripes, s.reset())
	}
}

func (c *Core) do(a Action) { c.out = append(c.out, a) }

// step does all that an input, or time, has made possible. The order matters:
// what is answered frees places in flight, displaced stripes go before new
// ones, and a segment is left before it is sealed.
func (c *Core) step(now time.Duration) {
	if c.err != nil {
		return
	}
	c.advance(now)
	c.place(now)
	c.sync(now)
	c.stock(now)
	c.sealAll(now)
	c.gate()
	c.finish(now)
}

// advance moves the acknowledged and the flushed seq up and tells who waited.
func (c *Core) advance(now time.Duration) {
	acked, flushed := c.acked, c.flushed
	for c.acked < c.lastSeq && c.entry(c.acked+1).complete() {
		c.acked++
	}
	if c.acked > acked {
		c.moves = 0
		c.do(Action{Kind: Acked, Seq: c.acked})
		c.ackWrites()
	}
	for c.flushed < c.acked && c.err == nil && (*c.log.at(0)).flushable() {
		c.flushOne()
	}
	if c.flushed > flushed {
		c.moves = 0
		c.do(Action{Kind: Flushed, Seq: c.flushed})
	}
	c.flushWaiters()
}

// flushOne makes the oldest stripe flushed: its place is final now and counts
// in its segment's seal.
func (c *Core) flushOne() {
	e := *c.log.at(0)
	h := e.stripe.Header
	if want := h.Participants().Count() * int(h.Shape.UnitBlocks()); len(h.CRCs) != want {
		c.end(errs.New(errs.Internal, "flush stripe", "seq %d has %d checksums, want %d", h.Seq, len(h.CRCs), want))
		return
	}
	c.log.pop()
	c.flushed++
	e.seg.seal.Add(h)
	e.seg.live--
	c.held -= e.blocks().Bytes()
	c.freeEntry(e)
}

// gate tells the shell when the memory cap is reached and when it is not.
func (c *Core) gate() {
	if full := c.Full(); full != c.waiting && !c.mapped && c.err == nil {
		c.waiting = full
		kind := Resume
		if full {
			kind = Wait
		}
		c.do(Action{Kind: kind})
	}
}
