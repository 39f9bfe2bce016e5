package simclient

import (
	"cmp"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

const listPiece = 1 << 20

// replayHeaders reads the stripe headers after a root from all segments that hold
// some: of a sealed one its list, of an unsealed one what is known to be flushed.
func (c *Client) replayHeaders(f *Fiber, covers layout.Seq, segments []*Segment) ([]*stripe.Header, error) {
	lists := make([][]*stripe.Header, len(segments))
	for i, s := range segments {
		if s.Map || s.Seal != nil && s.Seal.Last <= covers {
			continue
		}
		var err error
		if s.Seal != nil {
			lists[i], err = c.sealedHeaders(f, s)
		} else {
			lists[i], err = c.openHeaders(f, s)
		}
		if err != nil {
			return nil, errs.Wrap(err, "segment %d", s.ID)
		}
	}
	var all []*stripe.Header
	for i, list := range lists {
		if segments[i].Seal != nil {
			all = append(all, list...)
		}
	}
	return append(all, flushedOnly(lists, segments, covers)...), nil
}

func flushedOnly(lists [][]*stripe.Header, segments []*Segment, covers layout.Seq) (out []*stripe.Header) {
	flushed := covers
	for _, list := range lists {
		for _, h := range list {
			flushed = max(flushed, h.Flushed)
		}
	}
	for i, list := range lists {
		for _, h := range list {
			if segments[i].Seal == nil && h.Seq <= flushed {
				out = append(out, h)
			}
		}
	}
	return out
}

// sealedHeaders gives a sealed segment's list: any parity shard's, else all data
// shards' together.
func (c *Client) sealedHeaders(f *Fiber, s *Segment) ([]*stripe.Header, error) {
	var lastErr error
	for i := s.Geometry.K; int(i) < s.Geometry.Shards(); i++ {
		list, err := c.shardHeaders(f, s, layout.ShardIndex(i))
		if err == nil {
			return list, nil
		}
		lastErr = err
	}
	bySeq := map[layout.Seq]*stripe.Header{}
	for i := range s.Geometry.K {
		list, err := c.shardHeaders(f, s, layout.ShardIndex(i))
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
	slices.SortFunc(list, func(a, b *stripe.Header) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(list) != int(s.Seal.Count) {
		return nil, errs.New(errs.Corrupt, "", "the data shards list %d stripes, the seal %d", len(list), s.Seal.Count)
	}
	return list, nil
}

// shardHeaders gives one shard's part of a sealed list, checked by its digest.
func (c *Client) shardHeaders(f *Fiber, s *Segment, i layout.ShardIndex) ([]*stripe.Header, error) {
	list, err := c.list(f, s, i, s.Seal.Last)
	if err != nil {
		return nil, err
	}
	var sum stripe.ShardSeal
	for _, h := range list {
		sum.Add(h)
	}
	if want := s.Seal.Shards[i]; sum.Count != want.Count || sum.Digest != want.Digest {
		return nil, errs.New(errs.Corrupt, "", "shard %d/%d lists %d stripes that are not those of the seal (%d)", s.ID, i, sum.Count, want.Count)
	}
	return list, nil
}

// openHeaders gives what a parity shard of an unsealed segment lists.
func (c *Client) openHeaders(f *Fiber, s *Segment) ([]*stripe.Header, error) {
	var lastErr error
	for i := s.Geometry.K; int(i) < s.Geometry.Shards(); i++ {
		list, err := c.list(f, s, layout.ShardIndex(i), 0)
		if err == nil {
			return list, nil
		}
		lastErr = err
	}
	return nil, lastErr
}

// list reads a shard's stripe headers up to a seq (0: all), and checks that they
// are this shard's.
func (c *Client) list(f *Fiber, s *Segment, shard layout.ShardIndex, last layout.Seq) (out []*stripe.Header, err error) {
	for from := layout.Seq(1); from != 0; {
		r, err := c.chunkWait(f, s.Shards[shard].Server, &List{Ref: s.ref(shard), From: from, Most: listPiece})
		if err != nil {
			return nil, err
		}
		if out, err = appendHeaders(out, r.Bytes, s, shard, last); err != nil {
			return nil, err
		}
		if from = r.Next; last != 0 && from > last {
			break
		}
	}
	return out, nil
}

func appendHeaders(out []*stripe.Header, b []byte, s *Segment, shard layout.ShardIndex, last layout.Seq) ([]*stripe.Header, error) {
	for len(b) > 0 {
		h, n, err := stripe.Decode(b)
		if err != nil {
			return nil, err
		}
		b = b[n:]
		if h.Segment != s.ID || h.Shard != shard || h.Geometry != s.Geometry || h.Volume != s.Volume {
			return nil, errs.New(errs.Corrupt, "", "shard %d/%d lists the header of volume %d, shard %d/%d", s.ID, shard, h.Volume, h.Segment, h.Shard)
		}
		if last == 0 || h.Seq <= last {
			out = append(out, h)
		}
	}
	return out, nil
}
