package extent

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// world is a map, a slow and obvious model of it, and what would be on disk:
// pages by spot, the headers since the root, the root.
type world struct {
	t    testing.TB
	rnd  *rand.Rand
	m    *Map
	size uint64
	k    uint8

	model   map[uint64]Place // block to the place of that one block
	headers []*stripe.Header // all of them, newest copy; headers[seq-1]
	root    Root
	rooted  layout.Seq // covers of root
	pages   map[spotKey][]byte
	loads   int

	nextSegment, dataSegment, mapSegment layout.SegmentID
	dataEnd, mapEnd                      layout.ShardOffset
	shard                                layout.ShardOffset
}

func newWorld(t testing.TB, seed int64, size uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewSource(seed)), m: New(), size: size, k: 4,
		model: map[uint64]Place{}, pages: map[spotKey][]byte{}, nextSegment: 10, shard: 1 << 20}
	w.dataSegment, w.mapSegment = w.segment(), w.segment()
	return w
}

func (w *world) segment() layout.SegmentID {
	w.nextSegment += 1 + layout.SegmentID(w.rnd.Intn(3))
	return w.nextSegment
}

// header makes a stripe of ranges in the open data segment.
func (w *world) header(seq layout.Seq, ranges []stripe.Range) *stripe.Header {
	h := &stripe.Header{Cell: 1, Volume: 1, Epoch: 1, Seq: seq, Geometry: layout.Geometry{K: w.k, M: 2}, Ranges: ranges}
	for _, r := range ranges {
		if r.Kind == stripe.Write {
			h.Blocks += r.Count
		}
	}
	w.spot(h)
	return h
}

func (w *world) spot(h *stripe.Header) {
	h.Shape = h.Geometry.ShapeFor(layout.BlockCount(h.Blocks), h.Seq)
	if w.dataEnd+layout.ShardOffset(h.Shape.Unit) > w.shard {
		w.dataSegment, w.dataEnd = w.segment(), 0
	}
	h.Segment, h.Offset = w.dataSegment, w.dataEnd
	w.dataEnd = h.End()
	h.Shard = layout.ShardIndex(h.Geometry.K) // a parity shard
	h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
	if err := h.Check(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(ranges ...stripe.Range) *stripe.Header {
	h := w.header(w.m.Applied()+1, ranges)
	if err := w.m.Apply(h); err != nil {
		w.t.Fatal(err)
	}
	w.headers = append(w.headers[:h.Seq-1], h)
	apply(w.model, h)
	return h
}

func apply(model map[uint64]Place, h *stripe.Header) {
	i := uint32(0)
	for _, r := range h.Ranges {
		for b := uint64(r.Start); b < uint64(r.Start)+uint64(r.Count); b++ {
			if r.Kind != stripe.Write {
				delete(model, b)
				continue
			}
			model[b] = Place{h.Segment, h.Offset, h.Shape, i}
			i++
		}
	}
}

// move appends a stripe again in a fresh segment.
func (w *world) move(seq layout.Seq) {
	old := w.headers[seq-1]
	h := *old
	h.Geometry.K = uint8(1 + w.rnd.Intn(4))
	w.dataSegment, w.dataEnd = w.segment(), 0
	if uint64(h.Blocks) > uint64(h.Geometry.K)*uint64(w.shard)/layout.BlockSize {
		h.Geometry.K = old.Geometry.K
	}
	w.spot(&h)
	if err := w.m.Moved(old, &h); err != nil {
		w.t.Fatal(err)
	}
	w.headers[seq-1] = &h
	for b, p := range w.model {
		if old.Blocks > 0 && p.Segment == old.Segment && p.Offset == old.Offset {
			w.model[b] = Place{h.Segment, h.Offset, h.Shape, p.Index}
		}
	}
}

// load reads missing pages from the store.
func (w *world) load(need []PageRef) {
	for _, ref := range need {
		w.loads++
		b, ok := w.pages[ref.key()]
		if !ok {
			w.t.Fatalf("page %+v was never written", ref)
		}
		if err := w.m.Install(ref, b); err != nil {
			w.t.Fatalf("install %+v: %v", ref, err)
		}
	}
}

func (w *world) place(blocks []uint32, refs []PageRef) {
	for len(blocks) > 0 {
		n, total := 0, layout.BlockCount(0)
		for n < len(blocks) && total+layout.BlockCount(blocks[n]) <= 256 {
			total += layout.BlockCount(blocks[n])
			n++
		}
		shape := layout.Geometry{K: w.k, M: 2}.ShapeFor(total, 1)
		if w.mapEnd+layout.ShardOffset(shape.Unit) > w.shard {
			w.mapSegment, w.mapEnd = w.segment(), 0
		}
		index := uint32(0)
		for i := range n {
			refs[i].Segment, refs[i].Offset, refs[i].Shape, refs[i].Index = w.mapSegment, w.mapEnd, shape, index
			index += blocks[i]
		}
		w.mapEnd += layout.ShardOffset(shape.Unit)
		blocks, refs = blocks[n:], refs[n:]
	}
}

// step makes some of a checkpoint's pages.
func (w *world) step(c *Checkpoint, limit int) {
	pages, need, err := c.Next(limit, w.place)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range pages {
		if len(p.Data) != p.Ref.Bytes() {
			w.t.Fatalf("page %+v has %d bytes", p.Ref, len(p.Data))
		}
		w.pages[p.Ref.key()] = p.Data
	}
	w.load(need)
}

func (w *world) commit(c *Checkpoint) {
	w.root, w.rooted = c.Root(), c.Covers()
	w.m.Committed(c)
}

// crash forgets the map; headers after cut are lost with it.
func (w *world) crash(cut layout.Seq) {
	limits := w.m.limits
	w.m = New()
	if w.root != nil {
		m, err := Open(w.root)
		if err != nil {
			w.t.Fatal(err)
		}
		w.m = m
	}
	w.m.limits = limits
	w.headers = w.headers[:cut]
	w.model = map[uint64]Place{}
	for _, h := range w.headers {
		if err := w.m.Apply(h); err != nil {
			w.t.Fatal(err)
		}
		apply(w.model, h)
	}
}

func (w *world) lookup(r layout.Range) []Extent {
	for range 100 {
		list, need := w.m.Lookup(r, nil)
		if need == nil {
			return list
		}
		w.load(need)
	}
	w.t.Fatal("lookup misses for ever")
	return nil
}

// verify compares a range with the model.
func (w *world) verify(r layout.Range) error {
	at := r.Start
	for _, e := range w.lookup(r) {
		if e.Start != at || e.Count == 0 {
			return fmt.Errorf("extent %+v at block %d", e, at)
		}
		for i := range e.Count {
			got := e.Place
			got.Index += uint32(i)
			want, ok := w.model[uint64(e.Start)+uint64(i)]
			if e.Zero == ok || ok && got != want {
				return fmt.Errorf("block %d: got %+v zero %v, want %+v", uint64(e.Start)+uint64(i), got, e.Zero, want)
			}
		}
		at = e.End()
	}
	if at != r.End() {
		return fmt.Errorf("extents end at %d, want %d", at, r.End())
	}
	return nil
}

// verifyLive settles and compares the live counts with the model.
func (w *world) verifyLive() error {
	for range 1000 {
		need := w.m.Settle(100)
		if need == nil {
			break
		}
		w.load(need)
	}
	if n := w.m.Unsettled(); n != 0 {
		return fmt.Errorf("%d blocks stay unsettled", n)
	}
	want := map[layout.SegmentID]uint64{}
	for _, p := range w.model {
		want[p.Segment]++
	}
	var list []SegmentLive
	for {
		var need []PageRef
		if list, need = w.m.Segments(0, 1<<20, list[:0]); need == nil {
			break
		}
		w.load(need)
	}
	for _, s := range list {
		if s.Blocks != want[s.Segment] {
			return fmt.Errorf("segment %d has %d live blocks, want %d", s.Segment, s.Blocks, want[s.Segment])
		}
		delete(want, s.Segment)
	}
	if len(want) > 0 {
		return fmt.Errorf("segments not listed: %v", want)
	}
	return w.m.Check()
}

func isKind(err error, k errs.Kind) bool { return errors.Is(err, k) }
