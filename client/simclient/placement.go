package simclient

import (
	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// segment gives a segment's placement, asking for it when it is not known.
func (c *Client) segment(f *Fiber, id layout.SegmentID) (*Segment, error) {
	if s := c.places[id]; s != nil {
		return s, nil
	}
	return c.refresh(f, id)
}

func (c *Client) refresh(f *Fiber, id layout.SegmentID) (*Segment, error) {
	r, err := metaCall[*Segments](c, f, 10*attemptTimeout, attemptTimeout, &GetSegments{IDs: []layout.SegmentID{id}})
	if err != nil {
		return nil, errs.Wrap(err, "locate segment %d", id)
	}
	c.learn(r.List)
	if s := c.places[id]; s != nil && len(r.List) == 1 {
		return s, nil
	}
	return nil, errs.New(errs.NotFound, "", "segment %d does not exist", id)
}

func (c *Client) learn(list []*Segment) {
	for _, s := range list {
		c.places[s.ID] = s
	}
}

func (s *Segment) granted() write.Segment {
	g := write.Segment{ID: s.ID, Geometry: s.Geometry, Length: s.Length}
	for _, p := range s.Shards {
		g.Shards = append(g.Shards, write.Shard{Server: p.Server, Device: p.Device, Generation: p.Generation})
	}
	return g
}

func (s *Segment) ref(i layout.ShardIndex) frame.ShardRef {
	return frame.ShardRef{ShardKey: layout.ShardKey{Segment: s.ID, Shard: i}, Generation: s.Shards[i].Generation}
}
