package extent

import "strake/internal/layout"

// cache holds loaded pages, in a ring by use. Pages never change and are never
// dirty, so any of them may go at any time.
type cache struct {
	pages map[spotKey]*page
	ring  page // ring.next is the newest, ring.prev the longest unused
	bytes int64
}

// spotKey is a page's spot; no two pages ever have the same.
type spotKey struct {
	segment layout.SegmentID
	offset  layout.ShardOffset
	index   uint32
}

func (r PageRef) key() spotKey { return spotKey{r.Segment, r.Offset, r.Index} }

type page struct {
	ref        PageRef
	node       node
	prev, next *page
}

// pageOverhead is what a page takes beside its rows: the struct, its part of
// the Go map and what the allocator rounds up.
const pageOverhead = 448

func (p *page) bytes() int64 { return int64(cap(p.node.bits)) + pageOverhead }

func newCache() *cache {
	c := &cache{pages: map[spotKey]*page{}}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// get gives a page's node and notes its use; nil when it isn't loaded.
func (c *cache) get(ref PageRef) *node {
	p := c.pages[ref.key()]
	if p == nil || p.ref != ref {
		return nil
	}
	p.unlink()
	c.link(p)
	return &p.node
}

func (c *cache) put(ref PageRef, n node) {
	c.drop(ref)
	p := &page{ref: ref, node: n}
	c.pages[ref.key()] = p
	c.link(p)
	c.bytes += p.bytes()
}

// drop forgets whatever page is at the ref's spot.
func (c *cache) drop(ref PageRef) {
	if p := c.pages[ref.key()]; p != nil {
		p.unlink()
		delete(c.pages, ref.key())
		c.bytes -= p.bytes()
	}
}

// oldest is the page longest unused, nil for none.
func (c *cache) oldest() *page {
	if c.ring.prev == &c.ring {
		return nil
	}
	return c.ring.prev
}

func (c *cache) link(p *page) {
	p.prev, p.next = &c.ring, c.ring.next
	p.next.prev, c.ring.next = p, p
}

func (p *page) unlink() { p.prev.next, p.next.prev = p.next, p.prev }
