package janitor

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// listPage is how many bytes of headers one request asks for.
const listPage = 1 << 20

// sealed is one stripe of the agreed list, in which the target takes part.
type sealed struct {
	header *stripe.Header
	raw    []byte // the target's copy of the header
}

// list gives the stripes of the sealed list in which the target takes part, in
// order. They come from a parity shard, which holds the whole list, or else from
// all data shards together; in both cases what comes is held against the seal.
func (t *task) list(ctx context.Context) ([]sealed, error) {
	if t.goal().Count == 0 {
		return nil, nil
	}
	var last error
	for _, from := range t.listSources() {
		list, err := t.listFrom(ctx, from)
		if err == nil {
			return list, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		last = err
	}
	if last == nil {
		last = errs.New(errs.Unavailable, "", "no shard is at hand that holds the whole list")
	}
	return nil, errs.Wrap(last, "list the stripes of segment %d", t.spec.Key.Segment)
}

// listSources gives the sets of sources to list from, the best first: those that
// hold the target's whole list alone, then the data shards together.
func (t *task) listSources() (sets [][]*source) {
	var data []*source
	for _, doubtful := range []bool{false, true} {
		for _, s := range t.sources {
			switch {
			case s.doubtful != doubtful:
			case t.spec.Geometry.IsParity(s.ref.Shard) || s.ref.Shard == t.spec.Key.Shard:
				sets = append(sets, []*source{s})
			default:
				data = append(data, s)
			}
		}
	}
	if len(data) > 0 && t.spec.Geometry.IsParity(t.spec.Key.Shard) {
		sets = append(sets, data)
	}
	return sets
}

// listFrom merges the lists of sources by seq.
func (t *task) listFrom(ctx context.Context, from []*source) (list []sealed, err error) {
	cursors := make([]*cursor, len(from))
	for i, s := range from {
		cursors[i] = &cursor{task: t, src: s, next: 1}
		if err := cursors[i].advance(ctx); err != nil {
			return nil, err
		}
	}
	var own stripe.ShardSeal
	for {
		first := earliest(cursors)
		if first == nil {
			break
		}
		h, raw := first.header, first.raw
		if h.Participants().Has(t.spec.Key.Shard) {
			own.Add(h)
			stripe.Readdress(raw, t.spec.Key.Shard)
			h.Shard = t.spec.Key.Shard
			list = append(list, sealed{h, raw})
		}
		for _, c := range cursors {
			if c.header != nil && c.header.Seq == h.Seq {
				if err := c.advance(ctx); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, c := range cursors {
		if want := t.seal.Shards[c.src.ref.Shard]; c.sum != want {
			return nil, errs.New(errs.Corrupt, "", "the list of shard %v has %d stripes, the seal says %d", c.src.ref.ShardKey, c.sum.Count, want.Count)
		}
	}
	if own != t.goal() {
		return nil, errs.New(errs.Corrupt, "", "%d stripes of shard %v are listed, the seal says %d", own.Count, t.spec.Key, t.goal().Count)
	}
	return list, nil
}

func earliest(cursors []*cursor) (first *cursor) {
	for _, c := range cursors {
		if c.header != nil && (first == nil || c.header.Seq < first.header.Seq) {
			first = c
		}
	}
	return first
}

// cursor walks the list of one source up to the seal's last seq.
type cursor struct {
	task *task
	src  *source
	page []byte
	next layout.Seq // 0: the page is the last
	sum  stripe.ShardSeal

	header *stripe.Header // nil: the end
	raw    []byte         // a copy
}

// advance moves to the next stripe and counts it.
func (c *cursor) advance(ctx context.Context) error {
	c.header, c.raw = nil, nil
	for len(c.page) == 0 {
		if c.next == 0 {
			return nil
		}
		if err := c.fetch(ctx); err != nil {
			return err
		}
	}
	h, n, err := stripe.Decode(c.page)
	if err != nil {
		return errs.Wrap(err, "list shard %v", c.src.ref.ShardKey)
	}
	if key := (layout.ShardKey{Segment: h.Segment, Shard: h.Shard}); key != c.src.ref.ShardKey || h.Geometry != c.task.spec.Geometry {
		return errs.New(errs.Corrupt, "", "shard %v lists a stripe of %v", c.src.ref.ShardKey, key)
	}
	if h.Seq > c.task.seal.Last {
		c.page, c.next = nil, 0
		return nil
	}
	c.header, c.raw = h, append([]byte(nil), c.page[:n]...)
	c.page = c.page[n:]
	c.sum.Add(h)
	return nil
}

// fetch asks for the next page.
func (c *cursor) fetch(ctx context.Context) error {
	page, next, err := c.task.Remote.List(ctx, c.src.addr, c.src.ref, c.next)
	if err != nil {
		return err
	}
	if next != 0 && next <= c.next {
		return errs.New(errs.Unavailable, "list", "the list goes back to seq %d", next)
	}
	c.page, c.next = page, next
	return nil
}
