package client

import (
	"context"

	"strake/internal/layout"
)

// counts is what a root tells of the map's live blocks, for people and for whoever
// plans cleaning; nothing is freed by it. It belongs to who makes a checkpoint.
type counts struct {
	branch  bool                      // the volume has ancestors
	foreign map[layout.SegmentID]bool // their segments; nil: not known yet

	live  uint64 // blocks that the map names
	own   uint64 // of these, in the volume's own segments
	pages uint64 // blocks of its own map segments that are pages
}

// take counts, as of now.
func (c *counts) take(ctx context.Context, v *Volume) error {
	data, err := v.liveSegments(ctx)
	if err != nil {
		return err
	}
	pages, err := v.mapSegments(ctx)
	if err != nil {
		return err
	}
	if c.branch && c.foreign == nil {
		known := catalog{}
		if _, err := known.learn(ctx, v, known.unknown(data, pages)); err != nil {
			return err
		}
		c.foreign = map[layout.SegmentID]bool{}
		for id, info := range known {
			if !info.own {
				c.foreign[id] = true
			}
		}
	}
	c.live, c.own, c.pages = 0, 0, 1 // the new root's own page
	for _, s := range data {
		c.live += s.Blocks
		if !c.foreign[s.Segment] {
			c.own += s.Blocks
		}
	}
	for _, s := range pages {
		if !c.foreign[s.Segment] {
			c.pages += s.Blocks
		}
	}
	return nil
}
