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
// some: of a sealed one its list, of an unsealed one what is durable; flushed is the
// last seq that is known to be.
func (c *Client) replayHeaders(f *Fiber, covers layout.Seq, segments []*Segment) (all []*stripe.Header, flushed layout.Seq, err error) {
	lists, err := c.headerLists(f, covers, segments)
	if err != nil {
		return nil, 0, err
	}
	flushed = covers
	for _, l := range lists {
		flushed = max(flushed, l.flushed)
	}
	return upTo(lists, flushed), flushed, nil
}

// ancestorHeaders reads the stripe headers of an ancestor's segments, after a root,
// that a clone or a snapshot has.
func (c *Client) ancestorHeaders(f *Fiber, covers layout.Seq, a *Ancestor) ([]*stripe.Header, error) {
	lists, err := c.headerLists(f, covers, a.Segments)
	if err != nil {
		return nil, errs.Wrap(err, "of volume %d", a.Volume)
	}
	return slices.DeleteFunc(upTo(lists, a.Limit), func(h *stripe.Header) bool { return h.Seq > a.Limit }), nil
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
func (c *Client) headerLists(f *Fiber, covers layout.Seq, segments []*Segment) ([]headerList, error) {
	lists := make([]headerList, len(segments))
	for i, s := range segments {
		if s.Map || s.Seal != nil && s.Seal.Last <= covers {
			continue
		}
		var err error
		if s.Seal != nil {
			lists[i].durable, err = c.sealedHeaders(f, s)
			lists[i].flushed = s.Seal.Last
		} else {
			lists[i], err = c.openHeaders(f, s)
		}
		if err != nil {
			return nil, errs.Wrap(err, "segment %d", s.ID)
		}
	}
	return lists, nil
}

// headerList is what a segment's shards list.
type headerList struct {
	durable []*stripe.Header // by all participants, or sealed
	others  []*stripe.Header // by some: they count up to the flushed seq
	flushed layout.Seq       // the highest that the segment's headers name
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

// openHeaders gives what the shards of an unsealed segment list; all of them are
// asked at once.
func (c *Client) openHeaders(f *Fiber, s *Segment) (headerList, error) {
	lists := make([][]*stripe.Header, len(s.Shards))
	failed := make([]error, len(s.Shards))
	if !c.together(f, len(s.Shards), func(i int, f *Fiber) { lists[i], failed[i] = c.list(f, s, layout.ShardIndex(i), 0) }) {
		return headerList{}, errKilled
	}
	answered := layout.Mask(0)
	var lastErr error
	for i, err := range failed {
		if err == nil {
			answered = answered.With(layout.ShardIndex(i))
		} else {
			lastErr = err
		}
	}
	data, parity := s.Geometry.DataMask(), s.Geometry.ParityMask()
	if answered&parity == 0 && answered&data != data {
		return headerList{}, lastErr // a stripe may lie there that nobody shows
	}
	return sortHeaders(lists), nil
}

// sortHeaders sorts what the shards of one segment list by who has it.
func sortHeaders(lists [][]*stripe.Header) (out headerList) {
	have, first := map[layout.Seq]layout.Mask{}, map[layout.Seq]*stripe.Header{}
	for i, list := range lists {
		for _, h := range list {
			out.flushed = max(out.flushed, h.Flushed)
			if first[h.Seq] == nil {
				first[h.Seq] = h
			}
			have[h.Seq] = have[h.Seq].With(layout.ShardIndex(i))
		}
	}
	for seq, h := range first { // replay sorts them
		if have[seq] == h.Participants() {
			out.durable = append(out.durable, h)
		} else {
			out.others = append(out.others, h)
		}
	}
	return out
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
