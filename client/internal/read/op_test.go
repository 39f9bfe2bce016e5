package read

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// randomMemory makes a volume of a few segments of mixed stripes.
func randomMemory(t testing.TB, r *rand.Rand) *memory {
	m := newMemory(r)
	seq := layout.Seq(r.Intn(20))
	for id := range layout.SegmentID(1 + r.Intn(2)) {
		g := layout.Geometry{K: uint8(1 + r.Intn(6)), M: uint8(1 + r.Intn(3))}
		if r.Intn(8) == 0 {
			g.K = 16
		}
		for range 1 + r.Intn(12) {
			seq++
			n := 1 + r.Intn(3)
			if r.Intn(3) == 0 {
				n = 1 + r.Intn(40)
			}
			m.append(t, id+1, g, layout.BlockCount(n), seq)
		}
	}
	return m
}

// damage kills shards and rots blocks; m of each segment at most, when gentle.
func (m *memory) damage(gentle bool) {
	for id := range layout.SegmentID(len(m.headers)) {
		g := m.headers[id+1][0].Geometry
		most := m.r.Intn(int(g.M) + 1)
		if !gentle {
			most = m.r.Intn(g.Shards() + 1)
		}
		for _, s := range m.r.Perm(g.Shards())[:most] {
			key := layout.ShardKey{Segment: id + 1, Shard: layout.ShardIndex(s)}
			if m.r.Intn(2) == 0 {
				m.dead[key] = true
				continue
			}
			m.rot(key)
		}
		if m.r.Intn(3) == 0 {
			m.moved[layout.ShardKey{Segment: id + 1, Shard: layout.ShardIndex(m.r.Intn(g.Shards()))}] = true
		}
	}
}

func (m *memory) rot(key layout.ShardKey) {
	m.rotten[key] = map[layout.ShardOffset]bool{}
	for at := 0; at < len(m.shards[key]); at += layout.BlockSize {
		if m.r.Intn(3) == 0 {
			m.rotten[key][layout.ShardOffset(at)] = true
		}
	}
}

func TestReadsAreRightOrFail(t *testing.T) {
	var s shell // one Op for all: it can be used again
	for seed := range int64(250) {
		r := rand.New(rand.NewSource(seed))
		m := randomMemory(t, r)
		gentle := r.Intn(3) > 0
		m.damage(gentle)
		s.late = r.Intn(2) == 0
		for range 4 {
			from := r.Intn(len(m.blocks))
			to := from + 1 + r.Intn(len(m.blocks)-from)
			s.lates = 0
			m.read(t, &s, from, to)
			worst, tolerable := 0, true
			for _, p := range m.blocks[from:to] {
				bad := m.bad(p)
				worst, tolerable = max(worst, bad), tolerable && bad <= int(p.stripe.Geometry.M)
			}
			switch {
			case s.err == nil && !bytes.Equal(s.buffer, m.volume[from*layout.BlockSize:to*layout.BlockSize]):
				t.Fatalf("seed %d: blocks %d to %d are wrong", seed, from, to)
			case s.err != nil && tolerable:
				t.Fatalf("seed %d: blocks %d to %d with at most %d bad units: %v", seed, from, to, worst, s.err)
			case s.err != nil && !errors.Is(s.err, errs.Unavailable) && !errors.Is(s.err, errs.Corrupt):
				t.Fatalf("seed %d: %v", seed, s.err)
			}
			checkThrift(t, &s, seed)
		}
	}
}

// checkThrift: nobody is asked more than is needed.
func checkThrift(t *testing.T, s *shell, seed int64) {
	t.Helper()
	for _, g := range s.op.groups {
		if extra := g.asked.Count() - g.need - g.gone.Count() - s.lates; extra > 0 {
			t.Fatalf("seed %d: a group asked %d units, needed %d, %d failed, %d late", seed, g.asked.Count(), g.need, g.gone.Count(), s.lates)
		}
	}
	asked := 0
	for _, r := range s.op.requests {
		if r.group == nil {
			asked += r.bytes
		}
	}
	if asked != len(s.buffer) {
		t.Fatalf("seed %d: %d bytes were asked for a read of %d", seed, asked, len(s.buffer))
	}
}

func TestHealthyReadAsksEachShardOnce(t *testing.T) {
	m := newMemory(rand.New(rand.NewSource(1)))
	for seq := range layout.Seq(32) {
		m.append(t, 1, layout.Geometry{K: 4, M: 2}, 32, seq+1)
	}
	var s shell
	m.read(t, &s, 0, len(m.blocks))
	if s.err != nil || s.sent != 4 || !bytes.Equal(s.buffer, m.volume) {
		t.Fatalf("%d requests for 1 MiB of each of 4 shards: %v", s.sent, s.err)
	}
}

func TestHeaderOfAnotherStripeIsRefused(t *testing.T) {
	m := newMemory(rand.New(rand.NewSource(1)))
	m.append(t, 1, layout.Geometry{K: 2, M: 2}, 2, 1)
	var o Op
	o.Start(1, piecesOf(m.blocks, 0))
	v := Verdict{Err: errs.New(errs.Unavailable, "", "")}
	peer := o.Replied(0, v)[1].Request
	meta, payload, _ := m.answer(peer)
	if v := peer.Check(meta, [][]byte{payload}, nil); v.Err != nil || v.Bad != nil {
		t.Fatalf("a good unit is refused: %+v", v)
	}
	for name, change := range map[string]func(h *stripe.Header){
		"cell":    func(h *stripe.Header) { h.Cell = 9 },
		"segment": func(h *stripe.Header) { h.Segment = 9 },
		"shard":   func(h *stripe.Header) { h.Shard = 3 },
		"offset":  func(h *stripe.Header) { h.Offset = 8192 },
		"epoch":   func(h *stripe.Header) { h.Epoch = 0 },
	} {
		h := *m.headers[1][0]
		h.Shard = peer.Shard
		change(&h)
		meta := h.AppendTo(binary.LittleEndian.AppendUint32(nil, 1))
		if v := peer.Check(meta, [][]byte{payload}, nil); !errors.Is(v.Err, errs.Corrupt) {
			t.Errorf("another %s: got %v, want corrupt", name, v.Err)
		}
	}
	for n := range meta {
		if v := peer.Check(meta[:n], [][]byte{payload}, nil); v.Err == nil {
			t.Fatalf("%d of %d bytes of headers are taken for good", n, len(meta))
		}
	}
}

func TestStaleShardIsOutvoted(t *testing.T) {
	for seed := range int64(100) {
		m := newMemory(rand.New(rand.NewSource(seed)))
		m.append(t, 1, layout.Geometry{K: 3, M: 2}, 3, 1)
		m.dead[layout.ShardKey{Segment: 1, Shard: 0}] = true
		s := shell{memory: m, buffer: make([]byte, 3*layout.BlockSize), bytes: map[*Request][]byte{}}
		s.stale(t)
		if s.err != nil || !bytes.Equal(s.buffer, m.volume) {
			t.Fatalf("seed %d: %v, or wrong bytes", seed, s.err)
		}
	}
}

// stale reads everything while shard 1 holds an older, sound stripe in rows
// that only peers are asked for.
func (s *shell) stale(t *testing.T) {
	old := *s.headers[1][0]
	s.carry(t, s.op.Start(1, piecesOf(s.blocks, 0)))
	for !s.over {
		n := s.r.Intn(len(s.flying) + len(s.todo))
		if n >= len(s.flying) {
			f := s.todo[n-len(s.flying)]
			s.todo = append(s.todo[:n-len(s.flying)], s.todo[n-len(s.flying)+1:]...)
			s.carry(t, f())
			continue
		}
		r := s.flying[n]
		s.flying = append(s.flying[:n], s.flying[n+1:]...)
		if !r.Headers || r.Shard != 1 {
			s.reply(t, r)
			continue
		}
		unit := make([]byte, layout.BlockSize)
		old.Shard, old.Seq = 1, 77
		old.CRCs = append([]uint32(nil), old.CRCs...)
		copy(old.UnitCRCs(1), stripe.AppendBlockCRCs(nil, unit))
		s.bytes[r] = unit
		meta := old.AppendTo(binary.LittleEndian.AppendUint32(nil, 1))
		s.carry(t, s.op.Replied(r.ID, r.Check(meta, [][]byte{unit}, nil)))
	}
}

func TestSmallHealthyReadAllocatesNothing(t *testing.T) {
	m := newMemory(rand.New(rand.NewSource(1)))
	m.append(t, 1, layout.Geometry{K: 4, M: 2}, 1, 1)
	pieces := piecesOf(m.blocks, 0)
	crcs := binary.LittleEndian.AppendUint32(nil, stripe.BlockCRC(m.volume))
	bufs := [][]byte{m.volume}
	var o Op
	if n := testing.AllocsPerRun(100, func() {
		r := o.Start(1, pieces)[0].Request
		if a := o.Replied(r.ID, r.Check(crcs, bufs, nil)); a[0].Kind != Done {
			t.Fatal("not done")
		}
	}); n > 0 && !raceEnabled {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkSmallHealthyRead(b *testing.B) {
	m := newMemory(rand.New(rand.NewSource(1)))
	m.append(b, 1, layout.Geometry{K: 4, M: 2}, 1, 1)
	pieces := piecesOf(m.blocks, 0)
	crcs := binary.LittleEndian.AppendUint32(nil, stripe.BlockCRC(m.volume))
	bufs := [][]byte{m.volume}
	var o Op
	b.ReportAllocs()
	for b.Loop() {
		r := o.Start(1, pieces)[0].Request
		o.Replied(r.ID, r.Check(crcs, bufs, nil))
	}
}
