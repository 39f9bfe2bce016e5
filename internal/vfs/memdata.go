package vfs

import (
	"io"
	"maps"
)

const (
	pageSize   = 4096
	sectorSize = 512 // what a disk writes whole or not at all
)

type page [pageSize]byte

// content is a file's bytes: what is there now, and how to get back to what was
// last synced. Pages that are all zeros need not exist.
//
// A page that is not in undo is never changed, only replaced, so it may be
// shared with another content. Bytes of a page beyond size are zero.
type content struct {
	size    int64
	pages   map[int64]*page
	undo    map[int64]*page // the synced page, nil for a hole, of each changed since
	stale   map[int64]*page // like undo, for pages that a failed sync left clean
	synced  int64           // the synced size
	pending []change        // since the last sync, oldest first
}

// change is one un-synced call.
type change struct {
	kind changeKind
	off  int64
	n    int64  // length; for a truncation zero, and off is the new size
	data []byte // of a write
}

type changeKind uint8

const (
	changeWrite changeKind = iota
	changeTruncate
	changePunch
)

// own gives page i for changing and remembers its synced state. whole: the caller
// writes all of it.
func (c *content) own(i int64, whole bool) *page {
	old := c.pages[i]
	if _, changed := c.undo[i]; changed && old != nil {
		return old
	}
	c.remember(i)
	p := new(page)
	if old != nil && !whole {
		*p = *old
	}
	if c.pages == nil {
		c.pages = map[int64]*page{}
	}
	c.pages[i] = p
	return p
}

func (c *content) remember(i int64) {
	if _, changed := c.undo[i]; changed {
		return
	}
	if c.undo == nil {
		c.undo = map[int64]*page{}
	}
	c.undo[i] = c.pages[i]
	if old, stale := c.stale[i]; stale { // dirty again, so the next sync writes it
		c.undo[i] = old
		delete(c.stale, i)
	}
}

// fit tells how many of n bytes at off can be written with so many new pages.
func (c *content) fit(off, n, free int64) int64 {
	for i := off / pageSize; i*pageSize < off+n; i++ {
		if c.pages[i] != nil {
			continue
		}
		if free == 0 {
			return max(0, i*pageSize-off)
		}
		free--
	}
	return n
}

func (c *content) write(p []byte, off int64) {
	c.size = max(c.size, off+int64(len(p)))
	for len(p) > 0 {
		n := copy(c.own(off/pageSize, off%pageSize == 0 && len(p) >= pageSize)[off%pageSize:], p)
		p, off = p[n:], off+int64(n)
	}
}

func (c *content) read(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), max(0, c.size-off)))
	for done := 0; done < n; {
		at := off + int64(done)
		dst := p[done:min(n, done+pageSize-int(at%pageSize))]
		if pg := c.pages[at/pageSize]; pg != nil {
			copy(dst, pg[at%pageSize:])
		} else {
			clear(dst)
		}
		done += len(dst)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (c *content) truncate(size int64) {
	if size < c.size {
		c.punch(size, c.size-size)
	}
	c.size = size
}

// punch zeroes a range within the size and drops the pages that it covers.
func (c *content) punch(off, n int64) {
	if off >= c.size {
		return
	}
	end := off + min(n, c.size-off)
	first, last := off/pageSize, (end-1)/pageSize
	if last-first < int64(len(c.pages)+len(c.stale)) {
		for i := first; i <= last; i++ {
			c.zero(i, off, end)
		}
		return
	}
	for _, pages := range []map[int64]*page{c.pages, c.stale} { // the range is mostly holes
		for i := range pages {
			if first <= i && i <= last {
				c.zero(i, off, end)
			}
		}
	}
}

// zero clears what of page i lies in [off, end), and drops it when that is all.
func (c *content) zero(i, off, end int64) {
	if c.pages[i] == nil {
		if _, stale := c.stale[i]; stale {
			c.remember(i)
		}
		return
	}
	start := i * pageSize
	from, to := max(off, start), min(end, start+pageSize)
	if from == start && (to == start+pageSize || to == c.size) {
		c.remember(i)
		delete(c.pages, i)
		return
	}
	clear(c.own(i, false)[from-start : to-start])
}

// apply replays a change.
func (c *content) apply(ch change) {
	switch ch.kind {
	case changeWrite:
		c.write(ch.data, ch.off)
	case changeTruncate:
		c.truncate(ch.off)
	case changePunch:
		c.punch(ch.off, ch.n)
	}
}

// settle declares the present content synced, except for stale pages.
func (c *content) settle() {
	c.undo, c.pending, c.synced = nil, nil, c.size
}

// forsake is a failed sync as Linux does it: the dirty pages are marked clean,
// so that they read back, but no later sync writes them unless they are changed
// again, and a power cut loses them.
func (c *content) forsake() {
	if c.stale == nil {
		c.stale = map[int64]*page{}
	}
	maps.Copy(c.stale, c.undo) // a page is in one of them at most
	c.undo, c.pending = nil, nil
}

// durable gives the content as of the last sync. It shares pages.
func (c *content) durable() *content {
	d := &content{size: c.synced, synced: c.synced, pages: maps.Clone(c.pages)}
	if d.pages == nil {
		d.pages = map[int64]*page{}
	}
	for _, older := range []map[int64]*page{c.undo, c.stale} {
		for i, p := range older {
			if p == nil {
				delete(d.pages, i)
				continue
			}
			d.pages[i] = p
		}
	}
	return d
}
