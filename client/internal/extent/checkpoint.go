package extent

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Checkpoint is a map checkpoint in the making. In order:
//
//	c, err := m.Freeze()          // the state of now, up to c.Covers; writes go on
//	...flush, until the volume's flushed seq is at least c.Covers; Moved works meanwhile
//	for !c.Done() {
//		pages, need, err := c.Next(1<<20, place)
//		...write pages as map stripes; load need and Install
//	}
//	...flush the map stripes, record c.Root() with c.Retired() and c.RetiredMap()
//	m.Committed(c)                // or m.Aborted(c) at any point
//
// One checkpoint is under way at a time. It makes pages in small steps, so that
// neither a lock is held for long nor all new pages are in memory at once.
type Checkpoint struct {
	m      *Map
	covers layout.Seq
	vacate sorted[change]
	begun  bool
	err    error

	pass          *pass
	extents, live *node // new top nodes, nil until made
	batch         []PageWrite
	made          int // bytes made in this Next

	segments   sorted[change] // map segments after this checkpoint
	placed     []PageRef      // new pages
	freed      []PageRef      // pages that the new root doesn't name
	retired    []layout.SegmentID
	retiredMap []layout.SegmentID
	rootRef    PageRef
	root       Root
}

// PageWrite is a page to write. Data is Ref.Blocks x 4096 bytes and not kept by
// the map.
type PageWrite struct {
	Ref  PageRef
	Data []byte
}

// Placer gives the spots of pages of so many blocks each: it sets Segment to
// Index of refs. A page lies within one stripe; the pages of one call don't
// name each other, so a stripe can be shaped to fit them.
type Placer func(blocks []uint32, refs []PageRef)

// Freeze begins a checkpoint of the map as it is now. It fails with Busy while
// another is under way.
func (m *Map) Freeze() (*Checkpoint, error) {
	if m.checkpoint != nil {
		return nil, errs.New(errs.Busy, "freeze extent map", "the checkpoint up to %d is under way", m.checkpoint.covers)
	}
	c := &Checkpoint{m: m, covers: m.applied, vacate: m.vacate}
	m.checkpoint, m.vacate = c, sorted[change]{}
	m.layers = []*layer{{}, m.active()}
	return c, nil
}

// Covers is the last seq in the checkpoint.
func (c *Checkpoint) Covers() layout.Seq { return c.covers }

// Done tells that all pages were made.
func (c *Checkpoint) Done() bool { return c.root != nil }

// Root is the record for the metadata service, once Done.
func (c *Checkpoint) Root() Root { return c.root }

// Retired are data segments without a live block in this root, ascending: all
// that became so, and of earlier ones not yet told by Forget those that the
// checkpoint came across (Segments lists all). The metadata service retires the
// sealed ones whose last seq is covered.
func (c *Checkpoint) Retired() []layout.SegmentID { return c.retired }

// RetiredMap are the map segments in which this root names no page.
func (c *Checkpoint) RetiredMap() []layout.SegmentID { return c.retiredMap }

// Next makes more pages, children before parents, about limit bytes. need is
// not empty when it got stuck for missing pages (some pages may come all the
// same: write them). Once it was called no stripe up to Covers may be Moved.
// An error ends the checkpoint: only Aborted may follow.
func (c *Checkpoint) Next(limit int, place Placer) (pages []PageWrite, need []PageRef, err error) {
	if c.err == nil && !c.m.loaded {
		return nil, []PageRef{c.m.root}, nil
	}
	if !c.begun {
		c.begin()
	}
	for c.made = 0; c.err == nil && !c.Done() && c.made < limit; {
		if c.pass == nil {
			c.err = c.makeRoot(&pages, place)
			break
		}
		for c.err == nil && need == nil && !c.pass.done && c.made < limit {
			need, c.err = c.pass.step()
		}
		c.place(&pages, place)
		if need != nil {
			break
		}
		if c.pass.done {
			c.advance()
		}
	}
	return pages, need, c.err
}

func (c *Checkpoint) begin() {
	c.begun = true
	c.segments = c.m.segments.clone()
	c.pass = newPass(c, &c.m.extents, 0, runSource{c.m.frozen()})
}

// advance goes on after a finished pass: one level up, or to the next tree, or
// to the root page.
func (c *Checkpoint) advance() {
	p := c.pass
	top := p.top
	if top == nil {
		if len(p.result.removed)+len(p.result.added) > 0 {
			c.pass = newPass(c, p.tree, p.level+1, &p.result)
			return
		}
		top = &p.tree.top
	}
	if c.extents == nil {
		c.extents = top
		c.pass = newPass(c, &c.m.live, 0, liveSource{&c.m.frozen().delta, c})
		return
	}
	c.live, c.pass = top, nil
}

// add puts a finished page into the batch.
func (c *Checkpoint) add(b []byte, kind Kind, level uint8, first uint64) {
	c.batch = append(c.batch, PageWrite{sealPage(b, kind, level, first), b})
	c.made += len(b)
}

// place gives the batch its spots and hands it out.
func (c *Checkpoint) place(pages *[]PageWrite, place Placer) {
	if len(c.batch) == 0 || c.err != nil {
		return
	}
	blocks, refs := make([]uint32, len(c.batch)), make([]PageRef, len(c.batch))
	for i, w := range c.batch {
		blocks[i], refs[i] = w.Ref.Blocks, w.Ref
	}
	place(blocks, refs)
	for i := range c.batch {
		w := &c.batch[i]
		w.Ref.Segment, w.Ref.Offset, w.Ref.Shape, w.Ref.Index = refs[i].Segment, refs[i].Offset, refs[i].Shape, refs[i].Index
		if err := w.Ref.check(); err != nil {
			c.err = errs.As(err, errs.Internal, "place map page")
			return
		}
		c.took(w)
	}
	*pages = append(*pages, c.batch...)
	c.batch = c.batch[:0]
}

// took counts a placed page and tells the pass above.
func (c *Checkpoint) took(w *PageWrite) {
	if w.Ref.Kind == KindRoot {
		return
	}
	add(&c.segments, uint64(w.Ref.Segment), int64(w.Ref.Blocks))
	c.placed = append(c.placed, w.Ref)
	c.pass.result.added = append(c.pass.result.added, w.Ref)
	n := node{kind: w.Ref.Kind, level: w.Ref.Level}
	n.table, _, _ = parseTable(w.Data[pageHeader:], n.columns())
	n.bits = append([]byte(nil), n.bits...)
	c.m.cache.put(w.Ref, n)
}

// free counts a page that the new root doesn't name.
func (c *Checkpoint) free(ref PageRef) {
	add(&c.segments, uint64(ref.Segment), -int64(ref.Blocks))
	c.freed = append(c.freed, ref)
}

func (c *Checkpoint) retire(segment uint64) {
	c.retired = append(c.retired, layout.SegmentID(segment))
}
