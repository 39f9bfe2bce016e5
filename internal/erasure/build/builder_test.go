package build

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"strake/internal/erasure"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

func header(g layout.Geometry, blocks layout.BlockCount, seq layout.Seq) *stripe.Header {
	h := &stripe.Header{Geometry: g, Seq: seq, Shape: g.ShapeFor(blocks, seq), Blocks: uint32(blocks)}
	if blocks > 0 {
		h.Ranges = []stripe.Range{{Count: uint32(blocks), Kind: stripe.Write}}
	} else {
		h.Ranges = []stripe.Range{{Count: 1, Kind: stripe.Discard}}
	}
	h.Shard, _ = h.Participants().Nth(0)
	return h
}

// pieces cuts blocks into pieces of at most most blocks.
func pieces(r *rand.Rand, blocks layout.BlockCount, most int) (list [][]byte) {
	for left := int(blocks); left > 0; {
		n := min(left, 1+r.Intn(most))
		p := make([]byte, n*layout.BlockSize)
		r.Read(p)
		list = append(list, p)
		left -= n
	}
	return list
}

func TestUnitsHoldPayloadPaddingParityAndChecksums(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	var coders erasure.Set
	b := New(&coders)
	for range 300 {
		g := layout.Geometry{K: uint8(1 + r.Intn(16)), M: uint8(1 + r.Intn(4))}
		h := header(g, layout.BlockCount(r.Intn(1+int(g.K)*24)), layout.Seq(1+r.Intn(100)))
		payload := pieces(r, layout.BlockCount(h.Blocks), 1+r.Intn(40))
		u, err := b.Build(h, payload)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Check(); err != nil {
			t.Fatalf("%v with %d blocks: %v", g, h.Blocks, err)
		}
		checkUnits(t, &coders, h, u, bytes.Join(payload, nil))
		u.Release()
	}
}

func checkUnits(t *testing.T, coders *erasure.Set, h *stripe.Header, u *Units, payload []byte) {
	t.Helper()
	units := make([][]byte, h.Geometry.Shards())
	again := make([][]byte, h.Geometry.Shards())
	for p := h.Participants(); p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		units[s] = bytes.Join(u.Of(s), nil)
		if got := stripe.AppendBlockCRCs(nil, units[s]); fmt.Sprint(got) != fmt.Sprint(h.UnitCRCs(s)) {
			t.Fatalf("%v with %d blocks: checksums of shard %d differ", h.Geometry, h.Blocks, s)
		}
		if again[s] = units[s]; h.Geometry.IsParity(s) {
			again[s] = make([]byte, len(units[s]))
		}
	}
	if got := bytes.Join(Payload(nil, h, units), nil); !bytes.Equal(got, payload) {
		t.Fatalf("%v with %d blocks: payload differs", h.Geometry, h.Blocks)
	}
	if h.Blocks == 0 {
		return
	}
	last, _ := h.Shape.Data.Nth(h.Shape.Data.Count() - 1)
	if tail := units[last][len(payload)-(h.Shape.Data.Count()-1)*int(h.Shape.Unit):]; !bytes.Equal(tail, make([]byte, len(tail))) {
		t.Fatalf("%v with %d blocks: padding is not zeros", h.Geometry, h.Blocks)
	}
	coder, _ := coders.For(h.Geometry)
	if err := coder.Encode(again); err != nil {
		t.Fatal(err)
	}
	for s := range units {
		if !bytes.Equal(units[s], again[s]) {
			t.Fatalf("%v with %d blocks: parity %d differs", h.Geometry, h.Blocks, s)
		}
	}
}

// inside tells whether p is a part of one of the payload's pieces.
func inside(payload [][]byte, p []byte) bool {
	for _, piece := range payload {
		for at := 0; at+len(p) <= len(piece); at += layout.BlockSize {
			if &piece[at] == &p[0] {
				return true
			}
		}
	}
	return false
}

func TestNoDataByteIsCopied(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	b := New(&erasure.Set{})
	for _, payload := range [][][]byte{pieces(r, 1024, 1024), {make([]byte, 4<<20)}, pieces(r, 1024, 3)} {
		h := header(layout.Geometry{K: 4, M: 2}, 1024, 4)
		u, err := b.Build(h, payload)
		if err != nil {
			t.Fatal(err)
		}
		for s := range layout.ShardIndex(4) {
			for _, p := range u.Of(s) {
				if !inside(payload, p) {
					t.Fatalf("a piece of shard %d is not a slice of the payload", s)
				}
			}
			if len(payload) == 1 && len(u.Of(s)) != 1 {
				t.Fatalf("a contiguous unit came in %d pieces", len(u.Of(s)))
			}
		}
		u.Release()
	}
}

func TestPayloadThatDoesNotFitIsRefused(t *testing.T) {
	b := New(&erasure.Set{})
	for _, c := range []struct {
		change  func(h *stripe.Header)
		payload [][]byte
	}{
		{func(*stripe.Header) {}, [][]byte{make([]byte, 4096)}},
		{func(*stripe.Header) {}, [][]byte{make([]byte, 100), make([]byte, 8092)}},
		{func(h *stripe.Header) { h.Shape.Data = 0 }, [][]byte{make([]byte, 8192)}},
		{func(h *stripe.Header) { h.Shape.Data = 0b111 }, [][]byte{make([]byte, 8192)}},
		{func(h *stripe.Header) { h.Shape.Data = 1 << 5 }, [][]byte{make([]byte, 8192)}},
	} {
		h := header(layout.Geometry{K: 4, M: 2}, 2, 4)
		c.change(h)
		if _, err := b.Build(h, c.payload); !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("%+v: got %v, want invalid-argument", h.Shape, err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, blocks := range []layout.BlockCount{1, 32, 1024} {
		b.Run(fmt.Sprintf("4+2/%dKiB", blocks*4), func(b *testing.B) {
			builder := New(&erasure.Set{})
			h := header(layout.Geometry{K: 4, M: 2}, blocks, 4)
			payload := [][]byte{make([]byte, blocks.Bytes())}
			b.SetBytes(blocks.Bytes())
			b.ReportAllocs()
			for b.Loop() {
				u, err := builder.Build(h, payload)
				if err != nil {
					b.Fatal(err)
				}
				u.Release()
			}
		})
	}
}
