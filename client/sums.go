package client

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"strake/client/internal/content"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

const (
	// sumWindow is how many blocks' checksums are gathered at once: 4 GiB of a
	// volume, in 4 MiB of memory.
	sumWindow = 1 << 20
	// keptLists bounds the segments whose headers are kept from one window to the
	// next. A segment of 4 KiB stripes has 16 Ki of them, of about 250 bytes.
	keptLists = 32
)

// summer gives the checksums of a read-only handle's blocks, from stripe headers,
// without reading data. Not safe for concurrent use.
type summer struct {
	v     *Volume
	lists map[layout.SegmentID]map[layout.ShardOffset]*stripe.Header
}

func newSummer(v *Volume) *summer {
	return &summer{v: v, lists: map[layout.SegmentID]map[layout.ShardOffset]*stripe.Header{}}
}

// extents gives what a range maps to.
func (v *Volume) extents(ctx context.Context, r layout.Range) ([]extent.Extent, error) {
	for {
		v.mu.Lock()
		list, need := v.tree.Lookup(r, nil)
		if need == nil {
			v.evict()
			v.mu.Unlock()
			return list, nil
		}
		v.mu.Unlock()
		if err := v.loadPages(ctx, need); err != nil {
			return nil, err
		}
	}
}

// fill puts the checksums of the extents' blocks into sums, whose first is block
// first's. Those of zeros are content.Zero.
func (s *summer) fill(ctx context.Context, list []extent.Extent, first layout.BlockNumber, sums []uint32) error {
	if err := s.load(ctx, list); err != nil {
		return err
	}
	for _, e := range list {
		to := sums[e.Start-first:][:e.Count]
		if e.Zero {
			for i := range to {
				to[i] = content.Zero
			}
			continue
		}
		h := s.lists[e.Place.Segment][e.Place.Offset]
		if h == nil || h.Shape != e.Place.Shape || e.Place.Index+uint32(e.Count) > h.Blocks {
			return errs.New(errs.Corrupt, "", "no header of segment %d tells of the stripe at %d that the map names", e.Place.Segment, e.Place.Offset)
		}
		for i := range to {
			shard, block := h.Shape.Locate(layout.BlockCount(e.Place.Index) + layout.BlockCount(i))
			to[i] = h.UnitCRCs(shard)[block]
		}
	}
	return nil
}

// load reads the headers of the segments that the extents lie in.
func (s *summer) load(ctx context.Context, list []extent.Extent) error {
	var missing []layout.SegmentID
	wanted := map[layout.SegmentID]bool{}
	for _, e := range list {
		if e.Zero || wanted[e.Place.Segment] {
			continue
		}
		wanted[e.Place.Segment] = true
		if s.lists[e.Place.Segment] == nil {
			missing = append(missing, e.Place.Segment)
		}
	}
	for id := range s.lists {
		if len(s.lists)+len(missing) > keptLists && !wanted[id] {
			delete(s.lists, id)
		}
	}
	found := make([]map[layout.ShardOffset]*stripe.Header, len(missing))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(replayParallel)
	for i, id := range missing {
		group.Go(func() (err error) {
			found[i], err = s.v.cell.stripesOf(groupCtx, id)
			return errs.Wrap(err, "read the stripe headers of segment %d", id)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, id := range missing {
		s.lists[id] = found[i]
	}
	return nil
}

// stripesOf reads a segment's stripe headers and files them by offset.
func (c *Cell) stripesOf(ctx context.Context, id layout.SegmentID) (map[layout.ShardOffset]*stripe.Header, error) {
	r, err := call(ctx, c, "locate", func(ctx context.Context, m pb.MetaClient) (*pb.GetSegmentsReply, error) {
		return m.GetSegments(ctx, &pb.GetSegmentsRequest{Ids: []uint64{uint64(id)}})
	})
	if err != nil {
		return nil, err
	}
	c.places.learn(r.Segments, r.Servers)
	if len(r.Segments) != 1 {
		return nil, errs.New(errs.NotFound, "", "it does not exist any more")
	}
	lists, err := c.headerLists(ctx, 0, r.Segments)
	if err != nil {
		return nil, err
	}
	out := map[layout.ShardOffset]*stripe.Header{}
	for _, h := range slices.Concat(lists[0].others, lists[0].durable) {
		if h.Shape.Unit > 0 {
			out[h.Offset] = h
		}
	}
	return out, nil
}
