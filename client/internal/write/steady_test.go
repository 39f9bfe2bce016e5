package write_test

import (
	"testing"
	"time"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// TestSteadyStateAllocatesNothing: writes, acknowledgements, syncs and flushes
// go round without an allocation of the core's, once the shell frees its
// stripes. What is allowed is stripe.Seal.Add's: four bytes for each of the
// three participants.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	s := newSteady(t)
	for range 200 { // every queue grows to its size
		s.round()
	}
	if n := testing.AllocsPerRun(500, s.round); n > 3 {
		t.Fatalf("%v allocations per write and flush", n)
	}
}

func BenchmarkWriteAndFlush(b *testing.B) {
	s := newSteady(b)
	b.ReportAllocs()
	for b.Loop() {
		s.round()
	}
}

// steady is a shell whose servers answer at once.
type steady struct {
	c       *write.Core
	now     time.Duration
	actions []write.Action
	ranges  []stripe.Range
	crcs    [64]uint32
	stripes []*write.Stripe
	seg     layout.SegmentID
	flush   write.FlushID
}

func newSteady(t testing.TB) *steady {
	s := &steady{ranges: []stripe.Range{{Start: 7, Count: 1, Kind: stripe.Write}}}
	s.c = write.New(write.Config{Epoch: 1, Geometry: layout.Geometry{K: 4, M: 2}})
	s.round()
	if s.c.FlushedSeq() != 1 {
		t.Fatalf("flushed %d", s.c.FlushedSeq())
	}
	return s
}

// round is one write and one flush.
func (s *steady) round() {
	s.now += 100 * time.Microsecond
	s.flush++
	if err := s.c.Submit(s.now, write.Write{ID: write.WriteID(s.flush), Ranges: s.ranges}); err != nil {
		panic(err)
	}
	s.drive()
	s.c.Flush(s.now, s.flush)
	s.drive()
}

func (s *steady) drive() {
	for {
		s.actions = s.c.Take(s.actions[:0])
		if len(s.actions) == 0 {
			return
		}
		for _, a := range s.actions {
			s.do(a)
		}
	}
}

func (s *steady) do(a write.Action) {
	switch a.Kind {
	case write.Cut:
		h := a.Stripe.Header
		h.CRCs = append(h.CRCs[:0], s.crcs[:h.Participants().Count()*int(h.Shape.UnitBlocks())]...)
		s.stripes = append(s.stripes, a.Stripe)
		for p := a.Shards; p != 0; p &= p - 1 {
			i, _ := p.Nth(0)
			s.c.Appended(s.now, write.Reply{Seq: h.Seq, Copy: 1, Shard: i, Incarnation: 1}, nil)
		}
	case write.SendSync:
		s.c.Synced(s.now, a.Sync.ID, nil)
	case write.Flushed:
		for _, st := range s.stripes {
			s.c.Free(st)
		}
		s.stripes = s.stripes[:0]
	case write.Allocate:
		var out []write.Segment
		for range a.Allocation.Count {
			s.seg++
			g := write.Segment{ID: s.seg, Geometry: layout.Geometry{K: 4, M: 2}, Length: layout.MaxShardLength}
			for i := range 6 {
				g.Shards = append(g.Shards, write.Shard{Server: layout.ServerID(i + 1), Device: layout.DeviceID(i + 1), Generation: 1})
			}
			out = append(out, g)
		}
		s.c.Granted(s.now, a.Allocation.Request, out, nil)
	case write.SealSegment:
		s.c.Sealed(s.now, a.Seal.Segment, nil)
	}
}
