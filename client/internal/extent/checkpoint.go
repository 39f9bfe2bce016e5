package extent

import "strake/internal/layout"

// Checkpoint is a map checkpoint in the making. In order:
//
//	c, err := m.Freeze()          // the state of now, c.Covers; writes go on
//	...flush until the volume's flushed seq is at least c.Covers; Moved works meanwhile
//	for !c.Done() {
//		pages, need, err := c.Next(1<<20, place)
//		...load need and Install; write pages as map stripes
//	}
//	...flush the map stripes, record c.Root() with c.Retired() and c.RetiredMap()
//	m.Committed(c)                // or m.Aborted(c) at any point
//
// One checkpoint is under way at a time.
type Checkpoint struct{}

// PageWrite is a page to write. Data is Ref.Blocks x 4096 bytes and not kept by
// the map.
type PageWrite struct {
	Ref  PageRef
	Data []byte
}

// Placer gives the spots of pages of so many blocks each: Segment to Index of
// refs are to be set. A page lies within one stripe; the pages of one call
// don't name each other, so a stripe can be shaped to fit them.
type Placer func(blocks []uint32, refs []PageRef)

// Freeze begins a checkpoint of the map as it is now. It fails with Busy while
// another is under way.
func (m *Map) Freeze() (*Checkpoint, error) { return nil, nil }

// Covers is the last seq in the checkpoint.
func (c *Checkpoint) Covers() layout.Seq { return 0 }

// Next makes more pages, children before parents, about limit bytes. need is
// not empty when it got stuck for missing pages (some pages may come all the
// same: write them). Once it was called no stripe up to Covers may be Moved.
func (c *Checkpoint) Next(limit int, place Placer) (pages []PageWrite, need []PageRef, err error) {
	return nil, nil, nil
}

// Done tells that all pages were made.
func (c *Checkpoint) Done() bool { return true }

// Root is the record for the metadata service, once Done.
func (c *Checkpoint) Root() Root { return nil }

// Retired are data segments without a live block in this root, ascending: those
// that became so and those not yet told by Forget. The metadata service retires
// the sealed ones whose last seq is covered.
func (c *Checkpoint) Retired() []layout.SegmentID { return nil }

// RetiredMap are the map segments in which this root names no page.
func (c *Checkpoint) RetiredMap() []layout.SegmentID { return nil }

// Committed says that c's root was recorded: it is the map's root from now on.
func (m *Map) Committed(c *Checkpoint) {}

// Aborted says that c's root was not and never will be recorded; its changes
// wait for the next checkpoint.
func (m *Map) Aborted(c *Checkpoint) {}
