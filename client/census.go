package client

import (
	"context"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// censusStep is how many segments are counted under the mutex at once.
	censusStep = 4096
	// segmentsAtOnce is how many segments one call asks about.
	segmentsAtOnce = 1024
	// settleRounds bounds the rounds of page loads that make live counts exact; what
	// is left counts as live.
	settleRounds = 64
)

// segmentInfo is what the metadata service knows of a segment that a volume's map
// names. Of a sealed one it never changes.
type segmentInfo struct {
	own         bool // of the volume, not of an ancestor
	sealed      bool
	first, last layout.Seq
	stored      int64 // bytes on all shards
	geometry    layout.Geometry
}

// census is what a volume's segments hold.
type census struct {
	list      []clean.Segment    // own, sealed, and needed by no snapshot that lasts
	pages     []clean.Pages      // own map segments that are sealed
	inherited []clean.Segment    // of ancestors, with live blocks
	foreign   []layout.SegmentID // map segments of ancestors
	blocked   int64              // bytes in segments that snapshots need
	head      layout.Seq
}

// catalog remembers segments. It belongs to who cleans.
type catalog map[layout.SegmentID]segmentInfo

// learn asks about segments that are not known to be sealed, and gives those that
// are gone.
func (k catalog) learn(ctx context.Context, v *Volume, wanted []layout.SegmentID) (gone []layout.SegmentID, err error) {
	for len(wanted) > 0 {
		n := min(len(wanted), segmentsAtOnce)
		r, err := call(ctx, v.cell, "look segments up", func(ctx context.Context, m pb.MetaClient) (*pb.GetSegmentsReply, error) {
			return m.GetSegments(ctx, &pb.GetSegmentsRequest{Ids: ids(wanted[:n])})
		})
		if err != nil {
			return nil, err
		}
		v.cell.places.learn(r.Segments, r.Servers)
		found := map[layout.SegmentID]bool{}
		for _, s := range r.Segments {
			id := layout.SegmentID(s.Id)
			found[id] = true
			k[id] = infoOf(v, s)
		}
		for _, id := range wanted[:n] {
			if !found[id] {
				gone = append(gone, id)
			}
		}
		wanted = wanted[n:]
	}
	return gone, nil
}

func infoOf(v *Volume, s *pb.Segment) segmentInfo {
	info := segmentInfo{own: layout.VolumeID(s.Volume) == v.id, sealed: s.Seal != nil,
		geometry: layout.Geometry{K: uint8(s.GetGeometry().GetK()), M: uint8(s.GetGeometry().GetM())},
		first:    layout.Seq(s.GetSeal().GetFirstSeq()), last: layout.Seq(s.GetSeal().GetLastSeq())}
	for _, sh := range s.GetSeal().GetShards() {
		info.stored += int64(sh.Length)
	}
	return info
}

// take counts a volume's live blocks by segment. Segments that snapshots hold are needed
// whatever is live, unless the snapshots are likely to go.
func (k catalog) take(ctx context.Context, v *Volume, held layout.Held) (c census, err error) {
	if err := v.settle(ctx); err != nil {
		return c, err
	}
	data, err := v.liveSegments(ctx)
	if err != nil {
		return c, err
	}
	pages, err := v.mapSegments(ctx)
	if err != nil {
		return c, err
	}
	gone, err := k.learn(ctx, v, k.unknown(data, pages))
	if err != nil {
		return c, err
	}
	for _, id := range gone {
		delete(k, id)
	}
	v.mu.Lock()
	v.tree.Forget(gone...)
	c.head = v.tree.Applied()
	v.mu.Unlock()
	for _, s := range data {
		c.add(s, k[s.Segment], held)
	}
	for _, s := range pages {
		switch info, ok := k[s.Segment]; {
		case ok && !info.own:
			if s.Blocks > 0 {
				c.foreign = append(c.foreign, s.Segment)
			}
		case info.sealed:
			c.pages = append(c.pages, clean.Pages{ID: s.Segment, Live: layout.BlockCount(s.Blocks), Stored: info.stored})
		}
	}
	return c, nil
}

func (c *census) add(s extent.SegmentLive, info segmentInfo, held layout.Held) {
	one := clean.Segment{ID: s.Segment, Live: layout.BlockCount(s.Blocks), Stored: info.stored, Last: info.last}
	switch {
	case info.geometry.K == 0: // gone
	case !info.own:
		if s.Blocks > 0 {
			c.inherited = append(c.inherited, one)
		}
	case !info.sealed:
	case held.Holds(info.first) && s.Blocks > 0:
		c.blocked += info.stored
		if one.Held = true; held.Rolls(info.first) {
			c.list = append(c.list, one)
		}
	default:
		c.list = append(c.list, one)
	}
}

// unknown gives the segments that are not known to be sealed, and forgets those
// that no list has any more.
func (k catalog) unknown(lists ...[]extent.SegmentLive) (out []layout.SegmentID) {
	named := map[layout.SegmentID]bool{}
	for _, list := range lists {
		for _, s := range list {
			named[s.Segment] = true
			if !k[s.Segment].sealed {
				out = append(out, s.Segment)
			}
		}
	}
	for id := range k {
		if !named[id] {
			delete(k, id)
		}
	}
	return out
}

// settle makes the live counts exact, as far as that goes.
func (v *Volume) settle(ctx context.Context) error {
	for range settleRounds {
		v.mu.Lock()
		need := v.tree.Settle(pageParallel)
		v.evict()
		v.mu.Unlock()
		if len(need) == 0 {
			return nil
		}
		if err := v.loadPages(ctx, need); err != nil {
			return err
		}
	}
	return nil
}

// liveSegments lists the data segments of the map.
func (v *Volume) liveSegments(ctx context.Context) (list []extent.SegmentLive, err error) {
	for {
		var after layout.SegmentID
		if n := len(list); n > 0 {
			after = list[n-1].Segment
		}
		before := len(list)
		v.mu.Lock()
		var need []extent.PageRef
		list, need = v.tree.Segments(after, censusStep, list)
		v.evict()
		v.mu.Unlock()
		if len(need) > 0 {
			if err := v.loadPages(ctx, need); err != nil {
				return nil, err
			}
		} else if len(list)-before < censusStep {
			return list, nil
		}
	}
}

// mapSegments lists the map segments of the newest root.
func (v *Volume) mapSegments(ctx context.Context) ([]extent.SegmentLive, error) {
	for {
		v.mu.Lock()
		list, need := v.tree.MapSegments()
		v.mu.Unlock()
		if len(need) == 0 {
			return list, nil
		}
		if err := v.loadPages(ctx, need); err != nil {
			return nil, err
		}
	}
}
