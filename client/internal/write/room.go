package write

import (
	"time"

	"strake/internal/layout"
)

// Ready tells whether pages of so many blocks in all, padding included, would
// be cut at once by Place. When not, it asks for a segment; call it again after
// each event. It is also true when Place would refuse: that says why.
func (w *MapWriter) Ready(now time.Duration, blocks layout.BlockCount) bool {
	c := w.c
	if c.err != nil || w.state != mapPlacing {
		return true
	}
	if c.pending.len() > 0 {
		return false
	}
	var room layout.BlockCount
	for _, s := range c.open {
		room += s.left()
	}
	for _, s := range c.spares {
		if s.healthy(now) {
			room += s.left()
		}
	}
	if room >= blocks {
		return true
	}
	c.need, c.needLength = true, 0
	c.stock(now)
	return false
}

// left is how many blocks the rows that are not taken hold.
func (s *segment) left() layout.BlockCount {
	return layout.BlockCount(s.pub.Length-s.end) / layout.BlockSize * layout.BlockCount(s.pub.Geometry.K)
}
