package clean

import (
	"math/rand/v2"
	"slices"
	"testing"

	"strake/internal/layout"
)

var wide = layout.Geometry{K: 4, M: 2}

// full is a segment of full stripes of which part is live, in thousandths.
func full(id layout.SegmentID, part layout.BlockCount, last layout.Seq) Segment {
	const blocks = 64000
	return Segment{ID: id, Live: blocks / 1000 * part, Stored: Needs(blocks, wide), Last: last}
}

func ids(list []Segment) (out []layout.SegmentID) {
	for _, s := range list {
		out = append(out, s.ID)
	}
	return out
}

func TestTheEmptiestComeFirstAndOfEqualOnesTheOldest(t *testing.T) {
	list := []Segment{full(1, 900, 10), full(2, 500, 90), full(3, 500, 20), full(4, 0, 95), full(5, 980, 1)}
	got := ids(Choose(list, wide, 100, 1<<60, 1<<60))
	want := []layout.SegmentID{4, 3, 2, 1}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestNarrowStripesAndNarrowedSegmentsAreGarbageToo(t *testing.T) {
	const blocks = 12000
	narrow := Segment{ID: 1, Live: blocks, Stored: blocks * layout.BlockSize * 3}                // one data unit, two of parity
	narrowed := Segment{ID: 2, Live: blocks, Stored: Needs(blocks, layout.Geometry{K: 1, M: 2})} // written with four servers away
	whole := Segment{ID: 3, Live: blocks, Stored: Needs(blocks, wide)}                           // nothing to win
	if garbage, needed := Garbage([]Segment{narrow, narrowed, whole}, wide); garbage != 2*narrow.Stored/2 || needed != 3*whole.Stored {
		t.Errorf("garbage %d, needed %d", garbage, needed)
	}
	if got := ids(Choose([]Segment{whole, narrow, narrowed}, wide, 9, 1<<60, 1<<60)); len(got) != 2 {
		t.Errorf("got %v, want 1 and 2", got)
	}
	if got := Choose([]Segment{narrowed}, layout.Geometry{K: 1, M: 2}, 9, 1<<60, 1<<60); len(got) != 0 {
		t.Errorf("moved %v although the cell is as narrow as before", got)
	}
}

// A segment that snapshots hold for now is emptied once half of it is garbage, and not
// while space is short.
func TestWhatIsHeldForNowIsEmptiedOnceHalfOfItIsGarbage(t *testing.T) {
	list := []Segment{full(1, 900, 10), full(2, 510, 20), full(3, 490, 30), full(4, 900, 40)}
	for i := range list[:3] {
		list[i].Held = true
	}
	if got := ids(Choose(list, wide, 100, 1<<60, 1<<60)); !slices.Equal(got, []layout.SegmentID{3, 4}) {
		t.Errorf("got %v, want 3 and 4", got)
	}
	if got := ids(Free(list)); !slices.Equal(got, []layout.SegmentID{4}) {
		t.Errorf("free of snapshots are %v, want 4", got)
	}
	held := list[:2]
	if garbage, needed := Garbage(held, wide); garbage != 0 || needed != held[0].Stored+held[1].Stored {
		t.Errorf("what can't be had counts: garbage %d, needed %d", garbage, needed)
	}
}

func TestAWrittenVolumeIsLeftAloneUntilHalfOfItIsGarbage(t *testing.T) {
	const needed = 1 << 30
	for _, c := range []struct {
		goal    Goal
		garbage int64
		excess  bool
	}{{Busy, needed - 1<<20, false}, {Busy, needed + 1<<20, true}, {Idle, needed / 11, false}, {Idle, needed / 9, true}} {
		if got := c.goal.Excess(c.garbage, needed); got > 0 != c.excess {
			t.Errorf("%+v with %d garbage: excess %d", c.goal, c.garbage, got)
		}
	}
	if Idle.Excess(MinGarbage, 0) != 0 {
		t.Error("a little is cleaned")
	}
}

// TestCleaningEndsAndReachesItsGoal carries rounds out on random segments: what is
// live is packed into whole segments, so that the garbage falls with each round.
func TestCleaningEndsAndReachesItsGoal(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var list []Segment
		for i := range 5 + r.IntN(40) {
			s := full(layout.SegmentID(i+1), layout.BlockCount(r.IntN(1001)), layout.Seq(r.IntN(1000)))
			if r.IntN(3) == 0 { // narrow stripes
				s.Stored = max(s.Stored, s.Live.Bytes()*3)
			}
			list = append(list, s)
		}
		next := layout.SegmentID(len(list) + 1)
		for round := 0; ; round++ {
			garbage, needed := Garbage(list, wide)
			excess := Idle.Excess(garbage, needed)
			if excess == 0 {
				break
			}
			victims := Choose(list, wide, 1000, excess, 100000)
			if len(victims) == 0 || round > 100 {
				t.Fatalf("seed %d: round %d: %d victims for an excess of %d", seed, round, len(victims), excess)
			}
			gone := map[layout.SegmentID]bool{}
			moved := Segment{ID: next, Last: 1001}
			for _, v := range victims {
				if gone[v.ID] {
					t.Fatalf("seed %d: segment %d twice", seed, v.ID)
				}
				gone[v.ID] = true
				moved.Live += v.Live
			}
			next++
			moved.Stored = Needs(moved.Live, wide)
			kept := list[:0]
			for _, s := range list {
				if !gone[s.ID] {
					kept = append(kept, s)
				}
			}
			list = append(kept, moved)
			if now, _ := Garbage(list, wide); now >= garbage {
				t.Fatalf("seed %d: garbage %d after %d", seed, now, garbage)
			}
		}
	}
}

func TestMapSegmentsAreVacatedWhileHalfOfThemIsGarbage(t *testing.T) {
	const blocks = 8000
	one := func(id layout.SegmentID, live layout.BlockCount) Pages { return Pages{id, live, Needs(blocks, wide)} }
	list := []Pages{one(1, blocks), one(2, 100), one(3, 3000), one(4, 0)}
	if got := Vacate(list, wide, 100, MinGarbage); len(got) != 2 || got[0] != 4 || got[1] != 2 {
		t.Errorf("vacates %v, want 4 and 2", got)
	}
	if got := Vacate(list[:1], wide, 100, MinGarbage); len(got) != 0 {
		t.Errorf("vacates %v", got)
	}
	if got := Vacate(list, wide, 1, MinGarbage); len(got) != 3 {
		t.Errorf("vacates %v where one segment is allowed", got)
	}
}
