package client

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

const (
	// replayParallel bounds the segments whose headers are read at once.
	replayParallel = 8
	// listPiece is how many bytes of headers one List asks for.
	listPiece = 1 << 20
	// listTimeout bounds one List: another shard may tell the same.
	listTimeout = 5 * time.Second
	// listLate is when another shard is asked too.
	listLate = 200 * time.Millisecond
)

// replayHeaders reads the stripe headers after a root from all segments that
// hold some. Of a sealed segment it takes the sealed list, checked by its
// digest. Of an unsealed one, which a live writer appends to, it takes what is
// durable; flushed is the last seq that is known to be.
func (c *Cell) replayHeaders(ctx context.Context, covers layout.Seq, segments []*pb.Segment) (all []*stripe.Header, flushed layout.Seq, err error) {
	lists, err := c.headerLists(ctx, covers, segments)
	if err != nil {
		return nil, 0, err
	}
	flushed = covers
	for _, l := range lists {
		flushed = max(flushed, l.flushed)
	}
	return upTo(lists, flushed), flushed, nil
}

// ancestorHeaders reads the stripe headers of ancestors' segments, after a root, that
// a clone or a snapshot has: they were flushed when it was made. The ancestors are read
// side by side: of a long chain of clones each may have little to tell.
func (c *Cell) ancestorHeaders(ctx context.Context, covers layout.Seq, ancestors []*pb.Ancestor) (all []*stripe.Header, err error) {
	var segments []*pb.Segment
	for _, a := range ancestors {
		segments = append(segments, a.Segments...)
	}
	lists, err := c.headerLists(ctx, covers, segments)
	if err != nil {
		return nil, errs.Wrap(err, "of an ancestor")
	}
	for _, a := range ancestors {
		later := func(h *stripe.Header) bool { return h.Seq > layout.Seq(a.Limit) }
		all = append(all, slices.DeleteFunc(upTo(lists[:len(a.Segments)], layout.Seq(a.Limit)), later)...)
		lists = lists[len(a.Segments):]
	}
	return all, nil
}

// upTo gives the headers that are known to be durable, given that those up to
// flushed are.
func upTo(lists []headerList, flushed layout.Seq) (all []*stripe.Header) {
	for _, l := range lists {
		all = append(all, l.durable...)
		for _, h := range l.others {
			if h.Seq <= flushed {
				all = append(all, h)
			}
		}
	}
	return all
}

// headerLists reads what each segment holds after a root.
func (c *Cell) headerLists(ctx context.Context, covers layout.Seq, segments []*pb.Segment) ([]headerList, error) {
	lists := make([]headerList, len(segments))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(replayParallel)
	for i, p := range segments {
		s := segmentFromPB(p)
		if s.isMap || s.sealed && s.last <= covers {
			continue
		}
		group.Go(func() (err error) {
			if s.sealed {
				lists[i].durable, err = c.sealedHeaders(groupCtx, s, sealFromPB(p.Seal))
				lists[i].flushed = s.last
			} else {
				lists[i], err = c.openHeaders(groupCtx, s)
			}
			return errs.Wrap(err, "segment %d", s.id)
		})
	}
	return lists, group.Wait()
}

// headerList is what a segment's shards list.
type headerList struct {
	durable []*stripe.Header // by all participants, or sealed
	others  []*stripe.Header // by some: they count up to the flushed seq
	flushed layout.Seq       // the highest that the segment's headers name
}

// sealedHeaders gives a sealed segment's list. Any one parity shard holds it whole,
// and all data shards together do. A server that stands still holds up nobody who
// opens a volume for long: another is asked once it is late.
func (c *Cell) sealedHeaders(ctx context.Context, s *segment, seal stripe.Seal) ([]*stripe.Header, error) {
	var ways []func(context.Context) ([]*stripe.Header, error)
	for _, i := range c.shards.pace.inOrder(s, s.geometry.ParityMask()) {
		ways = append(ways, func(ctx context.Context) ([]*stripe.Header, error) { return c.shardHeaders(ctx, s, i, seal) })
	}
	ways = append(ways, func(ctx context.Context) ([]*stripe.Header, error) { return c.dataHeaders(ctx, s, seal) })
	list, err := firstOf(ctx, listLate, ways)
	return list, errs.Wrap(err, "neither a parity shard lists it, nor do all data shards")
}

// dataHeaders gives a sealed segment's list as all data shards together hold it.
func (c *Cell) dataHeaders(ctx context.Context, s *segment, seal stripe.Seal) ([]*stripe.Header, error) {
	bySeq := map[layout.Seq]*stripe.Header{}
	for i := range s.geometry.K {
		list, err := c.shardHeaders(ctx, s, layout.ShardIndex(i), seal)
		if err != nil {
			return nil, err
		}
		for _, h := range list {
			bySeq[h.Seq] = h
		}
	}
	if len(bySeq) != int(seal.Count) {
		return nil, errs.New(errs.Corrupt, "", "the data shards list %d stripes, the seal %d", len(bySeq), seal.Count)
	}
	return slices.Collect(maps.Values(bySeq)), nil
}

// shardHeaders gives one shard's part of a sealed list, checked by its digest.
func (c *Cell) shardHeaders(ctx context.Context, s *segment, i layout.ShardIndex, seal stripe.Seal) ([]*stripe.Header, error) {
	list, err := c.shards.list(ctx, s, i, seal.Last)
	if err != nil {
		return nil, err
	}
	var sum stripe.ShardSeal
	for _, h := range list {
		sum.Add(h)
	}
	if want := seal.Shards[i]; sum.Count != want.Count || sum.Digest != want.Digest {
		return nil, errs.New(errs.Corrupt, "", "shard %d/%d lists %d stripes that are not those of the seal (%d)", s.id, i, sum.Count, want.Count)
	}
	return list, nil
}

// openHeaders gives what the shards of an unsealed segment list, all of them
// durable where it is listed. A stripe that every participant lists is as good
// as flushed: recovery keeps it, if it keeps those before it. One that a silent
// participant may lack counts when a later header calls it flushed.
func (c *Cell) openHeaders(ctx context.Context, s *segment) (headerList, error) {
	lists := make([][]*stripe.Header, len(s.shards))
	failed := make([]error, len(s.shards))
	var group errgroup.Group
	for i := range s.shards {
		group.Go(func() error {
			lists[i], failed[i] = c.shards.list(ctx, s, layout.ShardIndex(i), 0)
			return nil
		})
	}
	group.Wait()
	answered := layout.Mask(0)
	var lastErr error
	for i, err := range failed {
		if err == nil {
			answered = answered.With(layout.ShardIndex(i))
		} else {
			lastErr = err
		}
	}
	data, parity := s.geometry.DataMask(), s.geometry.ParityMask()
	if answered&parity == 0 && answered&data != data {
		return headerList{}, lastErr // a stripe may lie there that nobody shows
	}
	return sortHeaders(lists), nil
}

// sortHeaders sorts what the shards of one segment list by who has it.
func sortHeaders(lists [][]*stripe.Header) (out headerList) {
	type stripeOf struct {
		header *stripe.Header
		have   layout.Mask
	}
	bySeq := map[layout.Seq]*stripeOf{}
	for i, list := range lists {
		for _, h := range list {
			out.flushed = max(out.flushed, h.Flushed)
			if bySeq[h.Seq] == nil {
				bySeq[h.Seq] = &stripeOf{header: h}
			}
			bySeq[h.Seq].have = bySeq[h.Seq].have.With(layout.ShardIndex(i))
		}
	}
	for _, s := range bySeq {
		if s.have == s.header.Participants() {
			out.durable = append(out.durable, s.header)
		} else {
			out.others = append(out.others, s.header)
		}
	}
	return out
}
