package store

import (
	"errors"
	"math/rand/v2"
	"testing"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

const testCell = layout.CellID(0xce11)

var (
	testGeometry = layout.Geometry{K: 2, M: 1}
	testID       = format.Superblock{Cell: testCell, Server: layout.UUID{1}, UUID: layout.UUID{2}, LogKey: [16]byte{3}}
	testOptions  = Options{LogBytes: minLogBytes, SmallAppend: 8 << 10, HeaderCacheBytes: 64 << 10}
)

func testRef(segment layout.SegmentID) frame.ShardRef {
	return frame.ShardRef{ShardKey: layout.ShardKey{Segment: segment, Shard: 2}, Generation: 1}
}

func testSpec(segment layout.SegmentID) ShardSpec {
	return ShardSpec{Key: testRef(segment).ShardKey, Generation: 1, Cell: testCell, Volume: 7, Epoch: 5,
		Geometry: testGeometry, Length: 1 << 20}
}

// unitOf makes the parity shard's copy of a stripe: any bytes that fit the CRCs.
func unitOf(segment layout.SegmentID, epoch layout.Epoch, seq layout.Seq, offset layout.ShardOffset, unit uint32) Append {
	payload := make([]byte, unit)
	r := rand.New(rand.NewPCG(uint64(segment), uint64(seq)))
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	blocks := unit / layout.BlockSize
	h := stripe.Header{Cell: testCell, Volume: 7, Segment: segment, Shard: 2, Geometry: testGeometry, Epoch: epoch, Seq: seq,
		Offset: offset, Shape: layout.Shape{Unit: unit, Data: 1}, Blocks: blocks}
	if blocks > 0 {
		h.Ranges = []stripe.Range{{Start: layout.BlockNumber(seq), Count: blocks, Kind: stripe.Write}}
		h.CRCs = stripe.AppendBlockCRCs(make([]uint32, blocks), payload)
	} else {
		h.Ranges = []stripe.Range{{Start: layout.BlockNumber(seq), Count: 3, Kind: stripe.Discard}}
	}
	if err := h.Check(); err != nil {
		panic(err)
	}
	return Append{Ref: testRef(segment), Epoch: epoch, Header: h.AppendTo(nil), Payload: payload}
}

func sealOf(appends ...Append) (s stripe.ShardSeal) {
	for _, a := range appends {
		h, _, err := stripe.Decode(a.Header)
		if err != nil {
			panic(err)
		}
		s.Add(h)
	}
	return s
}

func formatted(t testing.TB, fsys vfs.FS) vfs.FS {
	t.Helper()
	ok(t, Format(fsys, testID))
	return fsys
}

func opened(t testing.TB, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open(fsys, format.Superblock{}, testOptions)
	ok(t, err)
	return s
}

func newMem() *vfs.Mem { return vfs.NewMem(vfs.MemOptions{Capacity: 64 << 20}) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err error, kind errs.Kind) {
	t.Helper()
	if !errors.Is(err, kind) && errs.KindOf(err) != kind {
		t.Fatalf("got error %v (%v), want %v", err, errs.KindOf(err), kind)
	}
}

func synced(t testing.TB, s *Store, segments ...layout.SegmentID) {
	t.Helper()
	var refs []frame.ShardRef
	for _, g := range segments {
		refs = append(refs, testRef(g))
	}
	ok(t, s.Sync(5, s.Incarnation(), refs))
}

func crcOf(b []byte) uint32 { return stripe.BlockCRC(b[:layout.BlockSize]) }

func segment(i int) layout.SegmentID { return layout.SegmentID(i) }
