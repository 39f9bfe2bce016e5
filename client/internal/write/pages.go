package write

import (
	"time"

	"strake/internal/layout"
	"strake/proto/stripe"
)

// gatherPages moves as many pending pages into st as one stripe takes, none
// across two units. Units are as small as that allows; a short stripe has fewer
// of them, so the shape is not always the one that ShapeFor gives.
func (c *Core) gatherPages(s *segment, st *Stripe) layout.Shape {
	k := layout.BlockCount(s.pub.Geometry.K)
	unit := c.pageUnit(k, s.rows())
	h := st.Header
	h.Flags |= stripe.MapPage
	units := layout.BlockCount(0)
	for end := layout.BlockCount(0); c.pending.len() > 0; {
		p := c.pending.at(0)
		n := layout.BlockCount(p.r.Count)
		at := pageAt(end, n, unit)
		if n > unit || at+n > k*unit {
			break
		}
		st.Pieces = append(st.Pieces, Piece{p.write, 0, n, at})
		end = at + n
		h.Blocks, units = uint32(end), (end+unit-1)/unit
		c.pendBlocks -= n
		c.cutWhole(*p, h.Seq, nil)
		c.pending.pop()
	}
	c.held += layout.BlockCount(h.Blocks).Bytes() - st.payload().Bytes()
	return pageShape(h.Seq, k, units, unit)
}

// payload counts the blocks of the pieces: less than Header.Blocks where pages
// leave gaps.
func (s *Stripe) payload() (n layout.BlockCount) {
	for _, p := range s.Pieces {
		n += p.Blocks
	}
	return n
}

// pageAt is where a page of n blocks goes when the one before ends at end.
func pageAt(end, n, unit layout.BlockCount) layout.BlockCount {
	if left := unit - end%unit; n > left {
		return end + left
	}
	return end
}

// pageUnit is the smallest unit (nearly: it grows by eighths) that holds all
// pending pages, at most rows.
func (c *Core) pageUnit(k, rows layout.BlockCount) layout.BlockCount {
	unit := (min(c.pendBlocks, k*rows) + k - 1) / k
	for i := 0; i < c.pending.len() && i < int(k*rows); i++ {
		unit = max(unit, min(rows, layout.BlockCount(c.pending.at(i).r.Count)))
	}
	for ; unit < rows; unit += max(1, unit/8) {
		if c.packs(k, unit) {
			return unit
		}
	}
	return rows
}

// packs tells whether all pending pages fit in k units.
func (c *Core) packs(k, unit layout.BlockCount) bool {
	end := layout.BlockCount(0)
	for i := 0; i < c.pending.len(); i++ {
		n := layout.BlockCount(c.pending.at(i).r.Count)
		if end = pageAt(end, n, unit) + n; n > unit || end > k*unit {
			return false
		}
	}
	return true
}

// pageShape takes the given number of data shards, from one that rotates on.
func pageShape(seq layout.Seq, k, units, unit layout.BlockCount) layout.Shape {
	var data layout.Mask
	for i := layout.BlockCount(0); i < units; i++ {
		data = data.With(layout.ShardIndex((layout.BlockCount(seq) + i) % k))
	}
	return layout.Shape{Unit: uint32(unit * layout.BlockSize), Data: data}
}

// rows is how many rows one stripe can still take.
func (s *segment) rows() layout.BlockCount {
	return min(layout.BlockCount(s.pub.Length-s.end)/layout.BlockSize, blocksPerUnit)
}

// forPage closes map segments that the next page doesn't fit in, and opens
// one that it does.
func (c *Core) forPage(now time.Duration) *segment {
	page := layout.BlockCount(c.pending.at(0).r.Count)
	for len(c.open) > 0 {
		if c.open[0].rows() >= page {
			return c.open[0]
		}
		c.close(c.open[0], full)
	}
	for _, s := range c.spares { // a whole unit of the page's size
		if s.healthy(now) && s.rows() >= page {
			return c.openSpare(now, page*layout.BlockCount(s.pub.Geometry.K), c.lastSeq+1)
		}
	}
	c.need, c.needLength = true, layout.ShardOffset(page.Bytes())
	return nil
}
