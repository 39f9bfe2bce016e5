package simclient

import (
	"cmp"
	"slices"

	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/stripe"
)

// liveExtent is a run of live blocks that is to be relocated, with their checksums
// as the sealed header has them.
type liveExtent struct {
	extent.Extent
	sums []uint32
}

// liveIn lists what is live in segments, in block order.
func (v *Volume) liveIn(f *Fiber, segments []layout.SegmentID) ([]liveExtent, error) {
	var all []liveExtent
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
			if all, err = v.appendLive(f, all, appendWritten(nil, h)); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b liveExtent) int { return cmp.Compare(a.Start, b.Start) })
	return all, nil
}

// appendWritten appends what a stripe wrote.
func appendWritten(list []liveExtent, h *stripe.Header) []liveExtent {
	index := uint32(0)
	for _, r := range h.Ranges {
		if r.Kind != stripe.Write {
			continue
		}
		e := liveExtent{Extent: extent.Extent{Range: layout.Range{Start: r.Start, Count: layout.BlockCount(r.Count)},
			Place: extent.Place{Segment: h.Segment, Offset: h.Offset, Shape: h.Shape, Index: index}}}
		for i := range r.Count {
			shard, block := h.Shape.Locate(layout.BlockCount(index + i))
			e.sums = append(e.sums, h.UnitCRCs(shard)[block])
		}
		list, index = append(list, e), index+r.Count
	}
	return list
}

// appendLive appends the parts of extents that still lie where they were written.
func (v *Volume) appendLive(f *Fiber, list, written []liveExtent) ([]liveExtent, error) {
	for try := 0; ; try++ {
		found, need := v.current(list, written)
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

func (v *Volume) current(list, written []liveExtent) (found []liveExtent, need []extent.PageRef) {
	for _, e := range written {
		now, missing := v.tree.Current(e.Extent, nil)
		need = append(need, missing...)
		for _, part := range now {
			list = append(list, liveExtent{part, e.sums[part.Start-e.Start:][:part.Count]})
		}
	}
	return list, need
}

// relocation is a batch of live blocks and their bytes.
type relocation struct {
	list   []liveExtent
	blocks layout.BlockCount
	data   []byte
}

// nextRelocation takes a batch of at most `most` blocks off the front of a list.
func nextRelocation(list []liveExtent, most layout.BlockCount) (b relocation, rest []liveExtent) {
	for len(list) > 0 && b.blocks < most && len(b.list) < relocateRanges {
		e := list[0]
		n := min(e.Count, most-b.blocks)
		b.list, b.blocks = append(b.list, liveExtent{part(e.Extent, 0, n), e.sums[:n]}), b.blocks+n
		if n == e.Count {
			list = list[1:]
			continue
		}
		list[0] = liveExtent{part(e.Extent, n, e.Count-n), e.sums[n:]}
	}
	return b, list
}

// part is a part of an extent.
func part(e extent.Extent, from, count layout.BlockCount) extent.Extent {
	e.Start += layout.BlockNumber(from)
	e.Count = count
	e.Place.Index += uint32(from)
	return e
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
	at = 0
	for _, e := range b.list {
		for i, want := range e.sums {
			if got := stripe.BlockCRC(b.data[at:][:layout.BlockSize]); got != want {
				return errs.New(errs.Corrupt, "", "block %d has checksum %08x, the sealed header says %08x", int(e.Start)+i, got, want)
			}
			at += layout.BlockSize
		}
	}
	return nil
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
			live = without(live, layout.Range{Start: r.Start, Count: layout.BlockCount(r.Count)})
		}
	}
	return live, nil
}

// without takes a range out of ranges.
func without(list []layout.Range, out layout.Range) (left []layout.Range) {
	for _, r := range list {
		if before := min(r.End(), out.Start); before > r.Start {
			left = append(left, layout.Range{Start: r.Start, Count: layout.BlockCount(before - r.Start)})
		}
		if after := max(r.Start, out.End()); after < r.End() {
			left = append(left, layout.Range{Start: after, Count: layout.BlockCount(r.End() - after)})
		}
	}
	return left
}

func writeRange(r layout.Range) stripe.Range {
	return stripe.Range{Start: r.Start, Count: uint32(r.Count), Kind: stripe.Write}
}
