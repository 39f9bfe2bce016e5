package client

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"strake/client/internal/content"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// What gathering checksums may take of memory, whatever the volume: it runs in chunk
// servers. A window ends when it spans sumWindow blocks (64 GiB of a volume; 64 MiB of
// checksums) or has maxPieces runs of blocks (40 bytes each); the headers that are held
// at once take about headerMemory.
const (
	sumWindow    = 16 << 20
	maxPieces    = 2 << 20
	headerMemory = 64 << 20
	// sumStep is how many blocks are looked up in the map at once.
	sumStep = 1 << 16
	// headerBytes is about what a decoded header takes, besides its checksums.
	headerBytes = 256
)

// headerSource reads stripe headers. A Cell is one.
type headerSource interface {
	// locate gives the segments that are still there.
	locate(ctx context.Context, ids []layout.SegmentID) ([]*pb.Segment, error)
	// stripesIn gives a segment's headers by their offset.
	stripesIn(ctx context.Context, s *pb.Segment) (map[layout.ShardOffset]*stripe.Header, error)
}

// summer gives the checksums of a window of a read-only handle's blocks, from stripe
// headers, without reading data: add and fill, window by window. Of each segment that
// the window names it reads the headers once, and keeps nothing but checksums. So a
// volume that was written in order is read once, and one that was written here and there
// once for each window. Not safe for concurrent use.
type summer struct {
	from   headerSource
	room   *semaphore.Weighted // for headers, in bytes
	pieces []piece             // of the window, so far
}

// piece is a run of a window's blocks that lie one after another in a stripe.
type piece struct {
	place        extent.Place
	start, count uint32 // in the window
}

func newSummer(from headerSource) *summer {
	return &summer{from: from, room: semaphore.NewWeighted(headerMemory)}
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

// step is the next range of a window that begins at first, to be looked up and added;
// empty when the window is full or end is reached.
func (s *summer) step(first, at, end layout.BlockNumber) layout.Range {
	n := min(sumStep, end-at, first+sumWindow-at)
	if len(s.pieces) >= maxPieces {
		n = 0
	}
	return layout.Range{Start: at, Count: layout.BlockCount(n)}
}

// add takes extents into the window that begins at block first. Checksums of zeros are
// put into sums at once.
func (s *summer) add(list []extent.Extent, first layout.BlockNumber, sums []uint32) {
	for _, e := range list {
		if !e.Zero {
			s.pieces = append(s.pieces, piece{e.Place, uint32(e.Start - first), uint32(e.Count)})
			continue
		}
		to := sums[e.Start-first:][:e.Count]
		for i := range to {
			to[i] = content.Zero
		}
	}
}

// fill puts the checksums of the window's blocks into sums, and begins another window.
func (s *summer) fill(ctx context.Context, sums []uint32) error {
	slices.SortFunc(s.pieces, func(a, b piece) int { return cmp.Compare(a.place.Segment, b.place.Segment) })
	defer func() { s.pieces = s.pieces[:0] }()
	of := map[layout.SegmentID][]piece{}
	var ids []layout.SegmentID
	for left := s.pieces; len(left) > 0; {
		id := left[0].place.Segment
		n, _ := slices.BinarySearchFunc(left, id+1, func(p piece, id layout.SegmentID) int { return cmp.Compare(p.place.Segment, id) })
		of[id], left = left[:n], left[n:]
		ids = append(ids, id)
	}
	for part := range slices.Chunk(ids, segmentsAtOnce) {
		segments, err := s.from.locate(ctx, part)
		if err != nil {
			return err
		}
		if len(segments) != len(part) {
			return errs.New(errs.NotFound, "", "%d of %d segments that the map names do not exist any more", len(part)-len(segments), len(part)).
				WithHint("the volume is being cleaned: repeat it, or take a snapshot and compare that")
		}
		if err := s.read(ctx, segments, of, sums); err != nil {
			return err
		}
	}
	return nil
}

// read reads segments' headers, several at once as far as there is room, and puts the
// checksums that the window wants of them.
func (s *summer) read(ctx context.Context, segments []*pb.Segment, of map[layout.SegmentID][]piece, sums []uint32) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(replayParallel)
	for _, p := range segments {
		weight := headersWeight(p)
		if s.room.Acquire(groupCtx, weight) != nil {
			break // one of them failed, or ctx ended
		}
		group.Go(func() error {
			defer s.room.Release(weight)
			id := layout.SegmentID(p.Id)
			headers, err := s.from.stripesIn(groupCtx, p)
			if err == nil {
				err = put(of[id], headers, sums)
			}
			return errs.Wrap(err, "read the stripe headers of segment %d", id)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return errs.Wrap(ctx.Err(), "read stripe headers")
}

// headersWeight is about what a segment's headers take in memory, as far as there is
// room for them at all.
func headersWeight(s *pb.Segment) int64 {
	if s.Seal == nil {
		return headerMemory / replayParallel
	}
	var stored uint64
	for _, sh := range s.Seal.Shards {
		stored += sh.Length
	}
	return int64(min(headerMemory, uint64(s.Seal.Count)*headerBytes+stored/layout.BlockSize*4))
}

// put puts the checksums of pieces of one segment.
func put(pieces []piece, headers map[layout.ShardOffset]*stripe.Header, sums []uint32) error {
	for _, p := range pieces {
		h := headers[p.place.Offset]
		if h == nil || h.Shape != p.place.Shape || p.place.Index+p.count > h.Blocks {
			return errs.New(errs.Corrupt, "", "no header tells of the stripe at %d that the map names", p.place.Offset).
				WithHint("`strake scrub start` finds what is damaged and makes it again")
		}
		to := sums[p.start:][:p.count]
		for i := range to {
			shard, block := h.Shape.Locate(layout.BlockCount(p.place.Index) + layout.BlockCount(i))
			to[i] = h.UnitCRCs(shard)[block]
		}
	}
	return nil
}

// locate asks where segments are.
func (c *Cell) locate(ctx context.Context, segments []layout.SegmentID) ([]*pb.Segment, error) {
	r, err := call(ctx, c, "locate", func(ctx context.Context, m pb.MetaClient) (*pb.GetSegmentsReply, error) {
		return m.GetSegments(ctx, &pb.GetSegmentsRequest{Ids: ids(segments)})
	})
	if err != nil {
		return nil, err
	}
	c.places.learn(r.Segments, r.Servers)
	return r.Segments, nil
}

// stripesOf reads a segment's stripe headers and files them by offset.
func (c *Cell) stripesOf(ctx context.Context, id layout.SegmentID) (map[layout.ShardOffset]*stripe.Header, error) {
	list, err := c.locate(ctx, []layout.SegmentID{id})
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, errs.New(errs.NotFound, "", "it does not exist any more").
			WithHint("the volume is being cleaned: repeat it, or take a snapshot and compare that")
	}
	return c.stripesIn(ctx, list[0])
}

func (c *Cell) stripesIn(ctx context.Context, s *pb.Segment) (map[layout.ShardOffset]*stripe.Header, error) {
	lists, err := c.headerLists(ctx, 0, []*pb.Segment{s})
	if err != nil {
		return nil, err
	}
	out := make(map[layout.ShardOffset]*stripe.Header, len(lists[0].others)+len(lists[0].durable))
	for _, h := range slices.Concat(lists[0].others, lists[0].durable) {
		if h.Shape.Unit > 0 {
			out[h.Offset] = h
		}
	}
	return out, nil
}
