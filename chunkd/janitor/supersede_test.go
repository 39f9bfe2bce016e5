package janitor

import (
	"bytes"
	"context"
	"testing"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/internal/erasure"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// row is a sealed segment of 2+1 whose shards lie in stores of their own.
type row struct {
	t      *testing.T
	stores [3]*store.Store
	disks  [3]*vfs.Mem
	seal   stripe.Seal
	units  [3][][]byte // by shard and stripe
	coders erasure.Set
	odd    layout.Seq // the stripe whose parity is not what its data encodes to; 0: none is
}

const (
	rowCell    layout.CellID    = 7
	rowSegment layout.SegmentID = 5
	rowStripes                  = 3

	rowParity layout.ShardIndex = 2
)

var rowGeometry = layout.Geometry{K: 2, M: 1}

func (r *row) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *row) ref(i layout.ShardIndex, g layout.Generation) frame.ShardRef {
	return frame.ShardRef{ShardKey: layout.ShardKey{Segment: rowSegment, Shard: i}, Generation: g}
}

// newRow makes the segment with every shard at generation 1, finalized.
func newRow(t *testing.T) *row { return newOddRow(t, 0) }

// newOddRow makes one whose writer encoded a stripe wrongly.
func newOddRow(t *testing.T, odd layout.Seq) *row {
	r := &row{t: t, seal: stripe.NewSeal(rowSegment, rowGeometry), odd: odd}
	for i := range r.stores {
		r.disks[i] = vfs.NewMem(vfs.MemOptions{Capacity: 64 << 20})
		r.must(store.Format(r.disks[i], format.Superblock{Cell: rowCell, UUID: layout.UUID{byte(i + 1)}, Server: layout.UUID{9}, LogKey: [16]byte{1}}))
		var err error
		r.stores[i], err = store.Open(r.disks[i], format.Superblock{}, store.Options{LogBytes: 1 << 20, SmallAppend: 1})
		r.must(err)
		t.Cleanup(func() { _ = r.stores[i].Close() })
		r.must(r.stores[i].Create(store.ShardSpec{Key: r.ref(layout.ShardIndex(i), 1).ShardKey, Generation: 1, Cell: rowCell, Volume: 1, Epoch: 1,
			Geometry: rowGeometry, Length: 1 << 20}))
	}
	builder := build.New(&r.coders)
	for seq := layout.Seq(1); seq <= rowStripes; seq++ {
		r.append(builder, seq)
	}
	for i, s := range r.stores {
		ref := r.ref(layout.ShardIndex(i), 1)
		r.must(s.Sync(1, s.Incarnation(), []frame.ShardRef{ref}))
		r.must(s.Finalize(ref, r.seal.Last, r.seal.Shards[i]))
	}
	return r
}

func (r *row) append(builder *build.Builder, seq layout.Seq) {
	data := bytes.Repeat([]byte{byte(seq)}, 2*layout.BlockSize)
	h := &stripe.Header{Cell: rowCell, Volume: 1, Segment: rowSegment, Epoch: 1, Seq: seq, Geometry: rowGeometry, Shape: rowGeometry.ShapeFor(2, seq), Blocks: 2,
		Offset: layout.ShardOffset(seq-1) * layout.BlockSize, Ranges: []stripe.Range{{Start: layout.BlockNumber(seq) * 2, Count: 2, Kind: stripe.Write}}}
	units, err := builder.Build(h, [][]byte{data})
	r.must(err)
	if seq == r.odd {
		parity := units.Of(rowParity)[0]
		parity[17] ^= 1
		h.UnitCRCs(rowParity)[0] = stripe.BlockCRC(parity)
	}
	r.seal.Add(h)
	for i, s := range r.stores {
		h.Shard = layout.ShardIndex(i)
		unit := bytes.Join(units.Of(h.Shard), nil)
		r.units[i] = append(r.units[i], unit)
		r.must(s.Append(store.Append{Ref: r.ref(h.Shard, 1), Epoch: 1, Header: h.AppendTo(nil), Payload: unit}))
	}
	units.Release()
}

// Read and List implement Remote; an address is a shard's digit.
func (r *row) Read(_ context.Context, addr string, ref frame.ShardRef, ranges []frame.ReadRange, buf []byte) error {
	_, err := r.stores[addr[0]-'0'].Read(ref, ranges, buf)
	return err
}

func (r *row) List(_ context.Context, addr string, ref frame.ShardRef, from layout.Seq) ([]byte, layout.Seq, error) {
	page, _, next, err := r.stores[addr[0]-'0'].List(ref, from, 1<<20)
	return page, next, err
}

// request asks for a shard of the row from others of generation 1.
func (r *row) request(shard layout.ShardIndex, g layout.Generation, from ...layout.ShardIndex) *pb.RebuildShard {
	seal := &pb.Seal{Segment: uint64(rowSegment), FirstSeq: uint64(r.seal.First), LastSeq: uint64(r.seal.Last), Count: r.seal.Count}
	for _, sh := range r.seal.Shards {
		seal.Shards = append(seal.Shards, &pb.ShardSeal{Count: sh.Count, Length: uint64(sh.Length), Digest: sh.Digest[:]})
	}
	q := &pb.RebuildShard{Seal: seal, Target: &pb.ShardSpec{Shard: &pb.ShardRef{Segment: uint64(rowSegment), Shard: uint32(shard), Generation: uint32(g), Device: 1},
		Volume: 1, Epoch: 1, Geometry: &pb.Geometry{K: 2, M: 1}, Length: 1 << 20, Cell: uint64(rowCell)}}
	for _, i := range from {
		q.Sources = append(q.Sources, &pb.RebuildSource{Shard: uint32(i), Generation: 1, Device: uint64(i + 1), DataAddress: string(rune('0' + i))})
	}
	return q
}

// work works on shard 0's store, and finds the others in theirs.
func (r *row) work() Work {
	return Work{Device: &Device{ID: 1, Store: r.stores[0], Sched: &turns{quantum: 1 << 20}}, Coders: &r.coders, Remote: r,
		Pace: func(context.Context, int64) error { return nil }, Together: func(list []func()) {
			for _, f := range list {
				f()
			}
		}}
}

// rebuild makes shard 0 at a generation where it lies at generation 1.
func (r *row) rebuild(g layout.Generation) errs.Kind {
	return errs.Kind(r.work().Rebuild(r.t.Context(), r.request(0, g, 1, 2)).Result.Kind)
}

// reads tells whether shard 0 reads back at a generation.
func (r *row) reads(g layout.Generation) bool {
	for i, want := range r.units[0] {
		got := make([]byte, len(want))
		_, err := r.stores[0].Read(r.ref(0, g), []frame.ReadRange{{Offset: layout.ShardOffset(i) * layout.BlockSize, Length: uint32(len(want))}}, got)
		if err != nil || !bytes.Equal(got, want) {
			return false
		}
	}
	st, err := r.stores[0].Stat(r.ref(0, g))
	return err == nil && st.State == store.StateFinalized
}

// TestAnOlderGenerationMakesWay: the last device that is left for a lost shard holds an
// older generation of it.
func TestAnOlderGenerationMakesWay(t *testing.T) {
	r := newRow(t)
	if kind := r.rebuild(3); kind != errs.OK || !r.reads(3) {
		t.Fatalf("the rebuild: %v; generation 3 reads back: %v", kind, r.reads(3))
	}
	if kind := r.rebuild(2); kind != errs.Conflict || !r.reads(3) {
		t.Fatalf("a late call for generation 2: %v; generation 3 reads back: %v", kind, r.reads(3))
	}
	r.must(r.stores[0].Check())
}

// TestAnOlderGenerationStaysUntilTheNewOneIsProved: a source is damaged, and the older
// generation may be the last good copy.
func TestAnOlderGenerationStaysUntilTheNewOneIsProved(t *testing.T) {
	r := newRow(t)
	path := "shards/" + format.ShardFileName(r.ref(1, 1).ShardKey, 1)
	r.must(r.disks[1].FlipBit(path, 2*layout.BlockSize+17, 3)) // the last stripe
	if kind := r.rebuild(3); kind == errs.OK || !r.reads(1) {
		t.Fatalf("the rebuild from damaged sources: %v; the older generation reads back: %v", kind, r.reads(1))
	}
}
