package simclient

import (
	"cmp"
	"slices"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/stripe"
)

// liveIn lists what is live in segments, in block order.
func (v *Volume) liveIn(f *Fiber, segments []layout.SegmentID) ([]clean.Live, error) {
	var all []clean.Live
	for _, id := range segments {
		s, err := v.c.refresh(f, id)
		if err != nil {
			return nil, err
		}
		lists, err := v.c.headerLists(f, 0, []*Segment{s})
		if err != nil {
			return nil, errs.Wrap(err, "read the stripe headers of segment %d", id)
		}
		headers := slices.Concat(lists[0].others, lists[0].durable)
		slices.SortFunc(headers, func(a, b *stripe.Header) int { return cmp.Compare(a.Offset, b.Offset) })
		for _, h := range headers {
			if h.Shape.Unit == 0 {
				continue
			}
			if all, err = v.appendLive(f, all, clean.AppendWritten(nil, h)); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b clean.Live) int { return cmp.Compare(a.Start, b.Start) })
	return all, nil
}

// appendLive appends the parts of extents that still lie where they were written.
func (v *Volume) appendLive(f *Fiber, list, written []clean.Live) ([]clean.Live, error) {
	for try := 0; ; try++ {
		found, need := clean.AppendCurrent(v.tree, list, written)
		if len(need) == 0 {
			return found, nil
		}
		if try == pageTries {
			return nil, errs.New(errs.Overloaded, "", "the map's pages do not fit into its memory")
		}
		if err := v.loadPages(f, need); err != nil {
			return nil, err
		}
	}
}

// relocation is a batch of live blocks and their bytes.
type relocation struct {
	list   []clean.Live
	blocks layout.BlockCount
	data   []byte
}

// fill reads the batch's bytes, and compares them with their checksums.
func (b *relocation) fill(f *Fiber, v *Volume) error {
	b.data = make([]byte, b.blocks.Bytes())
	var pieces []piece
	at := 0
	for _, e := range b.list {
		pieces = append(pieces, piece{e.Extent, at})
		at += int(e.Count.Bytes())
	}
	if err := v.fetch(f, b.data, pieces); err != nil {
		return err
	}
	return clean.Verify(b.list, b.data)
}

// stillLive gives the parts of an extent that the map still names there and that
// no pending write is about to replace.
func (w *writer) stillLive(e extent.Extent) (live []layout.Range, need []extent.PageRef) {
	if planted.Is(planted.RelocationBlind) {
		return []layout.Range{e.Range}, nil
	}
	now, need := w.v.tree.Current(e, nil)
	if len(need) > 0 {
		return nil, need
	}
	for _, n := range now {
		live = append(live, n.Range)
	}
	for _, p := range w.v.overlay.writes {
		for _, r := range p.ranges {
			live = clean.Without(live, layout.Range{Start: r.Start, Count: layout.BlockCount(r.Count)})
		}
	}
	return live, nil
}

func writeRange(r layout.Range) stripe.Range {
	return stripe.Range{Start: r.Start, Count: uint32(r.Count), Kind: stripe.Write}
}
