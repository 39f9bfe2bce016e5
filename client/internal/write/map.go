package write

import (
	"cmp"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// MapWriter writes a volume's map checkpoints: pages in stripes with the
// MapPage flag, in map segments, under a seq space of their own
// (Config.LastSeq is its last seq, 0 in a new epoch). One checkpoint at a time:
// Begin, Place as often as needed, Finish, then Checkpointed and Recorded. A
// participant that fails aborts it: the shell gets Aborted and begins again.
//
// Inside it is a Core that cuts pages instead of writes, never displaces, and
// seals a segment at what the last recorded root holds there: stripes of an
// aborted checkpoint are never in a list, so their segments end with it.
type MapWriter struct {
	c     *Core
	state mapState
	pages WriteID // pages placed in this checkpoint
}

type mapState uint8

const (
	mapIdle      mapState = iota
	mapPlacing            // between Begin and Finish
	mapFinishing          // waits for the last page to be flushed
	mapRecording          // Checkpointed was said
)

// NewMap makes a map writer.
func NewMap(cfg Config) *MapWriter {
	c := New(cfg)
	c.mapped = true
	return &MapWriter{c: c}
}

// Begin starts a map checkpoint. Pages are numbered from 0 in the order of Place.
func (w *MapWriter) Begin(time.Duration) error {
	switch {
	case w.c.err != nil:
		return w.c.err
	case w.c.releasing:
		return errs.New(errs.Closed, "map checkpoint", "the volume is being released")
	case w.state != mapIdle:
		return errs.New(errs.Busy, "map checkpoint", "one is under way")
	}
	w.state, w.pages, w.c.unrecorded = mapPlacing, 0, true
	return nil
}

// Place lays out the next pages (blocks of each, 1 to 256; together at most
// MaxPlace) and emits a Cut for each stripe, at once or when a segment is
// granted. The stripe's Pieces name the pages (Write is the page's number) and
// where each lies: header, first payload block At; blocks between pages are
// zeros. No page spans two units. The shell takes all Cuts of the call before
// it encodes, so that parents can name their children's places; children come
// before parents, in this call or an earlier one. Busy: the pages of the last
// call wait for a segment.
func (w *MapWriter) Place(now time.Duration, pages []layout.BlockCount) error {
	c := w.c
	var total layout.BlockCount
	for i, n := range pages {
		if total += n; n == 0 || n > blocksPerUnit || total > w.MaxPlace() {
			return errs.New(errs.InvalidArgument, "place map pages", "page %d of %d blocks, %d so far", i, n, total)
		}
	}
	switch {
	case c.err != nil:
		return c.err
	case w.state != mapPlacing:
		return errs.New(errs.InvalidArgument, "place map pages", "no map checkpoint was begun")
	case c.pending.len() > 0:
		return errs.New(errs.Busy, "place map pages", "%d blocks wait for a segment", c.pendBlocks)
	}
	for _, n := range pages {
		c.pending.push(part{r: stripe.Range{Count: uint32(n), Kind: stripe.Write}, write: w.pages, last: true, at: now})
		w.pages++
	}
	c.pendBlocks += total
	c.held += total.Bytes()
	w.step(now)
	return nil
}

// MaxPlace bounds the pages of one Place, in blocks.
func (w *MapWriter) MaxPlace() layout.BlockCount {
	return layout.BlockCount(w.c.cfg.InFlight) * fullStripe(w.c.cfg.Geometry)
}

// Finish ends the placing: when every page is flushed, Checkpointed comes.
func (w *MapWriter) Finish(now time.Duration) {
	if w.state == mapPlacing {
		w.state = mapFinishing
		w.step(now)
	}
}

// Recorded answers Checkpointed: RecordRoot is done (its outcome must be known:
// the shell repeats the command until it is), or failed for good.
func (w *MapWriter) Recorded(now time.Duration, err error) {
	if w.c.err != nil || w.state != mapRecording {
		return
	}
	if err != nil && metaEnds(err) {
		w.c.end(errs.Wrap(err, "record map root"))
		return
	}
	if err != nil {
		w.c.abort(err)
	} else {
		w.c.record()
	}
	w.step(now)
}

// record makes what is flushed what the root holds.
func (c *Core) record() {
	c.unrecorded = false
	for _, list := range [][]*segment{c.open, c.closed} {
		for _, s := range list {
			s.recorded = s.seal.Clone()
		}
	}
}

// step follows a core's step with the checkpoint's.
func (w *MapWriter) step(now time.Duration) {
	c := w.c
	if w.state == mapFinishing && c.pending.len() == 0 {
		c.selfGoal = c.lastSeq
	}
	c.step(now)
	switch {
	case c.err != nil:
	case !c.unrecorded:
		w.state = mapIdle // recorded, or aborted by a participant
	case w.state == mapFinishing && c.pending.len() == 0 && c.log.len() == 0:
		w.state = mapRecording
		c.do(Action{Kind: Checkpointed, Lists: c.lists()})
	}
}

// lists is what each unsealed map segment holds, ascending by segment.
func (c *Core) lists() (out []stripe.Seal) {
	for _, list := range [][]*segment{c.open, c.closed} {
		for _, s := range list {
			if s.seal.Count > 0 {
				out = append(out, s.seal.Clone())
			}
		}
	}
	slices.SortFunc(out, func(a, b stripe.Seal) int { return cmp.Compare(a.Segment, b.Segment) })
	return out
}

// abort drops a map checkpoint: its stripes count no more, and the segments
// that hold any end at what the last recorded root holds.
func (c *Core) abort(err error) {
	for c.log.len() > 0 {
		c.freeEntry(c.log.pop())
	}
	c.pending.reset()
	c.moving.reset()
	c.flight = c.flight[:0]
	c.pendBlocks, c.held, c.need, c.unrecorded = 0, 0, false, false
	c.flushed, c.acked, c.selfGoal = c.lastSeq, c.lastSeq, c.lastSeq
	for i := len(c.open) - 1; i >= 0; i-- {
		if s := c.open[i]; s.stripes != int(s.recorded.Count) {
			c.close(s, left)
		}
	}
	for _, list := range [][]*segment{c.open, c.closed} {
		for _, s := range list {
			s.live, s.flight = 0, 0
		}
	}
	c.do(Action{Kind: Aborted, Err: err})
}

// abortMap aborts a map checkpoint that lost its place.
func (c *Core) abortMap() {
	if c.mapped && c.moving.len() > 0 {
		c.abort(errs.New(errs.Unavailable, "write map pages", "a participant of a map segment failed"))
	}
}
