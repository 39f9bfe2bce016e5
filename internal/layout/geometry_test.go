package layout

import (
	"math/rand"
	"testing"
)

func TestShapeHoldsEveryPayloadBlockExactlyOnce(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 20000 {
		g := Geometry{K: uint8(1 + r.Intn(MaxData)), M: uint8(1 + r.Intn(MaxParity))}
		n := BlockCount(1 + r.Intn(int(g.K)*MaxUnit/BlockSize))
		s := g.ShapeFor(n, Seq(r.Uint64()))
		if s.Unit > MaxUnit || s.Unit%BlockSize != 0 || s.Data&^g.DataMask() != 0 {
			t.Fatalf("%v blocks=%d: bad shape %+v", g, n, s)
		}
		if capacity := s.UnitBlocks() * BlockCount(s.Data.Count()); capacity < n || capacity-n >= s.UnitBlocks() {
			t.Fatalf("%v blocks=%d: shape %+v holds %d, a unit is wasted or missing", g, n, s, capacity)
		}
		if g.Participants(s).Count() < int(g.M)+1 {
			t.Fatalf("%v blocks=%d: fewer than m+1 participants", g, n)
		}
		type place struct {
			s ShardIndex
			b BlockCount
		}
		seen := map[place]bool{}
		for i := range n {
			sh, b := s.Locate(i)
			if !s.Data.Has(sh) || b >= s.UnitBlocks() || seen[place{sh, b}] {
				t.Fatalf("%v blocks=%d block %d: bad place %d/%d", g, n, i, sh, b)
			}
			seen[place{sh, b}] = true
		}
	}
}

func TestStripeWithoutPayloadTakesOneDataShard(t *testing.T) {
	g := Geometry{K: 4, M: 2}
	s := g.ShapeFor(0, 7)
	if s.Unit != 0 || s.Data != 1<<3 {
		t.Fatalf("got %+v, want unit 0 on data shard 3", s)
	}
}

func TestMaskOrder(t *testing.T) {
	m := Mask(0b101001)
	for n, want := range []ShardIndex{0, 3, 5} {
		if got, ok := m.Nth(n); !ok || got != want || m.Rank(got) != n {
			t.Fatalf("Nth(%d) = %d %v, want %d", n, got, ok, want)
		}
	}
	if _, ok := m.Nth(3); ok {
		t.Fatal("Nth(3) found a fourth member")
	}
}
