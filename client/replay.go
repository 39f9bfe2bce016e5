package client

import (
	"context"

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
)

// replayHeaders reads the stripe headers after a root from all segments that
// hold some. Of a sealed segment it takes the sealed list, checked by its
// digest. Of an unsealed one, which a live writer appends to, it takes what the
// writer said is flushed.
func (c *Cell) replayHeaders(ctx context.Context, volume layout.VolumeID, covers layout.Seq, segments []*pb.Segment) ([]*stripe.Header, error) {
	lists := make([][]*stripe.Header, len(segments))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(replayParallel)
	for i, p := range segments {
		s := segmentFromPB(p)
		if s.isMap || s.sealed && s.last <= covers {
			continue
		}
		group.Go(func() (err error) {
			if s.sealed {
				lists[i], err = c.sealedHeaders(groupCtx, s, sealFromPB(p.Seal))
			} else {
				lists[i], err = c.openHeaders(groupCtx, s)
			}
			return errs.Wrap(err, "segment %d", s.id)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []*stripe.Header
	for i, list := range lists {
		if segments[i].Seal != nil {
			all = append(all, list...)
		}
	}
	return append(all, flushedOnly(lists, segments, covers)...), nil
}

// flushedOnly takes from the unsealed segments' lists the stripes that are known
// to be flushed.
func flushedOnly(lists [][]*stripe.Header, segments []*pb.Segment, covers layout.Seq) []*stripe.Header {
	flushed := covers
	for _, list := range lists {
		for _, h := range list {
			flushed = max(flushed, h.Flushed)
		}
	}
	var out []*stripe.Header
	for i, list := range lists {
		if segments[i].Seal != nil {
			continue
		}
		for _, h := range list {
			if h.Seq <= flushed {
				out = append(out, h)
			}
		}
	}
	return out
}

// sealedHeaders gives a sealed segment's list. Any one parity shard holds it
// whole; when none of them gives it, all data shards together do.
func (c *Cell) sealedHeaders(ctx context.Context, s *segment, seal stripe.Seal) ([]*stripe.Header, error) {
	var lastErr error
	for i := s.geometry.K; int(i) < s.geometry.Shards(); i++ {
		list, err := c.shardHeaders(ctx, s, layout.ShardIndex(i), seal)
		if err == nil {
			return list, nil
		}
		lastErr = err
	}
	bySeq := map[layout.Seq]*stripe.Header{}
	for i := range s.geometry.K {
		list, err := c.shardHeaders(ctx, s, layout.ShardIndex(i), seal)
		if err != nil {
			return nil, errs.Wrap(lastErr, "no parity shard lists it")
		}
		for _, h := range list {
			bySeq[h.Seq] = h
		}
	}
	list := make([]*stripe.Header, 0, len(bySeq))
	for _, h := range bySeq {
		list = append(list, h)
	}
	if len(list) != int(seal.Count) {
		return nil, errs.New(errs.Corrupt, "", "the data shards list %d stripes, the seal %d", len(list), seal.Count)
	}
	return list, nil
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

// openHeaders gives what the parity shards of an unsealed segment list; one that
// answers is enough, since each holds every flushed stripe.
func (c *Cell) openHeaders(ctx context.Context, s *segment) ([]*stripe.Header, error) {
	var lastErr error
	for i := s.geometry.K; int(i) < s.geometry.Shards(); i++ {
		list, err := c.shards.list(ctx, s, layout.ShardIndex(i), 0)
		if err == nil {
			return list, nil
		}
		lastErr = err
	}
	return nil, lastErr
}
