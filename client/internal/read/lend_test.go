package read

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

func TestReadOfWholeStripesAsksOneUnitMoreForALostShard(t *testing.T) {
	m := newMemory(rand.New(rand.NewSource(1)))
	for seq := range layout.Seq(8) {
		m.append(t, 1, layout.Geometry{K: 4, M: 2}, 32, seq+1)
	}
	m.dead[layout.ShardKey{Segment: 1, Shard: 2}] = true
	var s shell
	m.read(t, &s, 0, len(m.blocks))
	if s.err != nil || !bytes.Equal(s.buffer, m.volume) {
		t.Fatalf("wrong bytes, or %v", s.err)
	}
	asked := 0
	for _, r := range s.op.requests {
		asked += r.bytes
	}
	if want := len(s.buffer) / 4 * 5; asked != want { // the lost shard's own request, and one of parity
		t.Fatalf("%d bytes were asked for, want %d", asked, want)
	}
}

// TestLoanOfAnotherStripeIsDoubted: what a direct request left in the buffer does
// not fit the stripe that parity is of. The rows are then decoded from units whose
// headers were seen.
func TestLoanOfAnotherStripeIsDoubted(t *testing.T) {
	for seed := range int64(50) {
		m := newMemory(rand.New(rand.NewSource(seed)))
		m.append(t, 1, layout.Geometry{K: 3, M: 2}, 3, 1)
		m.dead[layout.ShardKey{Segment: 1, Shard: 1}] = true
		s := shell{memory: m, buffer: make([]byte, len(m.volume)), bytes: map[*Request][]byte{}}
		s.spoil = func(r *Request) {
			if r.Shard == 2 && !r.Headers {
				s.buffer[r.Scatter[0].Offset] ^= 1
			}
		}
		s.run(t, s.op.Start(1, piecesOf(m.blocks, 0)))
		lost := m.volume[layout.BlockSize:][:layout.BlockSize]
		if s.err != nil || !bytes.Equal(s.buffer[layout.BlockSize:][:layout.BlockSize], lost) {
			t.Fatalf("seed %d: the lost rows are wrong, or %v", seed, s.err)
		}
		if g := s.op.groups[0]; !g.proud || !g.asked.Has(2) {
			t.Fatalf("seed %d: shard 2 was not asked for its header", seed)
		}
	}
}

func TestLenderThatFailsIsReplaced(t *testing.T) {
	for seed := range int64(50) {
		m := newMemory(rand.New(rand.NewSource(seed)))
		m.append(t, 1, layout.Geometry{K: 4, M: 2}, 4, 1)
		m.dead[layout.ShardKey{Segment: 1, Shard: 0}] = true
		key := layout.ShardKey{Segment: 1, Shard: 3}
		if seed%2 == 0 {
			m.dead[key] = true
		} else {
			m.rotten[key] = map[layout.ShardOffset]bool{0: true}
		}
		s := shell{late: seed%3 == 0}
		m.read(t, &s, 0, len(m.blocks))
		if s.err != nil || !bytes.Equal(s.buffer, m.volume) {
			t.Fatalf("seed %d: wrong bytes, or %v", seed, s.err)
		}
		m.dead[layout.ShardKey{Segment: 1, Shard: 4}] = true
		if m.read(t, &s, 0, len(m.blocks)); !errors.Is(s.err, errs.Unavailable) && !errors.Is(s.err, errs.Corrupt) {
			t.Fatalf("seed %d: three of six are lost: %v", seed, s.err)
		}
	}
}

// TestLenderThatIsRottenElsewhereIsAsked: two shards of 2+1 are rotten, in rows of
// their own, so each row can be had.
func TestLenderThatIsRottenElsewhereIsAsked(t *testing.T) {
	for seed := range int64(50) {
		m := newMemory(rand.New(rand.NewSource(seed)))
		m.append(t, 1, layout.Geometry{K: 2, M: 1}, 4, 1)
		for i := range layout.ShardIndex(2) {
			key := layout.ShardKey{Segment: 1, Shard: i}
			m.rotten[key] = map[layout.ShardOffset]bool{layout.ShardOffset(i) * layout.BlockSize: true}
		}
		s := shell{late: seed%3 == 0}
		m.read(t, &s, 0, len(m.blocks))
		if s.err != nil || !bytes.Equal(s.buffer, m.volume) {
			t.Fatalf("seed %d: wrong bytes, or %v", seed, s.err)
		}
	}
}
