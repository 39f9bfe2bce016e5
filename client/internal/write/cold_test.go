package write_test

import (
	"errors"
	"testing"
	"time"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// grants gives what a core asks for, one segment an allocation; client's requests are
// refused while full.
type grants struct {
	c    *write.Core
	next layout.SegmentID
	full bool
	cut  []*write.Stripe
	done map[write.WriteID]error
}

func (g *grants) take(now time.Duration) {
	for more := true; more; {
		more = false
		for _, a := range g.c.Take(nil) {
			switch a.Kind {
			case write.Allocate:
				more = true
				if g.full && !a.Allocation.Cold {
					g.c.Granted(now, a.Allocation.Request, nil, errs.New(errs.NoSpace, "", "full"))
					continue
				}
				g.next++
				s := write.Segment{ID: g.next, Geometry: layout.Geometry{K: 2, M: 1}, Length: 4 << 20}
				for i := range 3 {
					s.Shards = append(s.Shards, write.Shard{Server: layout.ServerID(i + 1), Device: layout.DeviceID(i + 1), Generation: 1})
				}
				g.c.Granted(now, a.Allocation.Request, []write.Segment{s}, nil)
			case write.Cut:
				g.cut = append(g.cut, a.Stripe)
			case write.WriteDone:
				g.done[a.Write] = a.Err
			}
		}
	}
}

func blocks(start, n uint32) []stripe.Range {
	return []stripe.Range{{Start: layout.BlockNumber(start), Count: n, Kind: stripe.Write}}
}

// TestRelocationsGoToASegmentOfTheirOwnFromTheReserve: in a full cell, where writes are
// refused, and apart from what clients write.
func TestRelocationsGoToASegmentOfTheirOwnFromTheReserve(t *testing.T) {
	g := &grants{c: write.New(write.Config{Epoch: 1, Geometry: layout.Geometry{K: 2, M: 1}}), done: map[write.WriteID]error{}}
	check := func(err error) {
		t.Helper()
		if g.take(0); err != nil {
			t.Fatal(err)
		}
	}
	check(g.c.Submit(0, write.Write{ID: 1, Ranges: blocks(0, 1)}))
	if _, ready, err := g.c.RelocationReady(0, 8); ready || err != nil {
		t.Fatalf("ready %v %v before there is a segment", ready, err)
	}
	g.take(0)
	wide, ready, err := g.c.RelocationReady(0, 8)
	if !ready || err != nil || wide.K != 2 {
		t.Fatalf("%v %v %v", wide, ready, err)
	}
	check(g.c.Submit(0, write.Write{ID: 2, Ranges: blocks(100, 8), Relocation: true}))
	check(g.c.Submit(0, write.Write{ID: 3, Ranges: blocks(1, 1)}))
	g.c.Tick(time.Second)
	g.take(time.Second)
	if len(g.cut) != 3 || g.cut[0].Segment.ID != g.cut[2].Segment.ID || g.cut[1].Segment.ID == g.cut[0].Segment.ID {
		t.Fatalf("cut %d stripes", len(g.cut))
	}
	if h := g.cut[1].Header; h.Flags&stripe.Relocation == 0 || h.Seq != 2 || h.Blocks != 8 || h.Shape.Data.Count() != 2 {
		t.Errorf("the relocation is %+v", h)
	}
	full := write.New(write.Config{Epoch: 1, Geometry: layout.Geometry{K: 2, M: 1}})
	g = &grants{c: full, full: true, done: map[write.WriteID]error{}}
	check(full.Submit(0, write.Write{ID: 1, Ranges: blocks(0, 1)}))
	if !errors.Is(g.done[1], errs.NoSpace) {
		t.Fatalf("a write into a full cell: %v", g.done[1])
	}
	_, _, err = full.RelocationReady(0, 8)
	check(err)
	if _, ready, err := full.RelocationReady(0, 8); !ready || err != nil {
		t.Fatalf("no relocation in a full cell: %v", err)
	}
	check(full.Submit(0, write.Write{ID: 2, Ranges: blocks(100, 8), Relocation: true}))
	check(full.Submit(0, write.Write{ID: 3, Ranges: blocks(1, 1)}))
	full.Tick(3 * time.Second)
	g.take(3 * time.Second)
	if len(g.cut) != 1 || g.cut[0].Header.Blocks != 8 || !errors.Is(g.done[3], errs.NoSpace) {
		t.Errorf("cut %d stripes, the write: %v: the reserve is for relocations", len(g.cut), g.done[3])
	}
	full.CloseCold(3 * time.Second)
	if err := full.Check(); err != nil {
		t.Error(err)
	}
}
