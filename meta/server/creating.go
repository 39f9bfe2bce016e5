package server

import (
	"sync"

	"strake/internal/layout"
)

// creating knows the allocated segments that a call of this leader works on;
// all others were left behind by a call or a leader that is gone.
type creating struct {
	mu sync.Mutex
	by map[layout.SegmentID]*allocation // guarded by mu
}

func (c *creating) add(a *allocation, ids []layout.SegmentID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[layout.SegmentID]*allocation{}
	}
	for _, id := range ids {
		c.by[id] = a
	}
}

func (c *creating) done(a *allocation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, owner := range c.by {
		if owner == a {
			delete(c.by, id)
		}
	}
}

func (c *creating) has(id layout.SegmentID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[id] != nil
}
