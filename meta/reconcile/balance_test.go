package reconcile

import (
	"testing"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// uneven is a world of n servers of 100 MB each, of which the first three hold
// many segments.
func uneven(t *testing.T, n, segments int) *world {
	w := &world{t: t, state: state.New(), planner: New(DefaultLimits())}
	w.must(state.FormCell{Cell: 1})
	for i := range n {
		w.must(state.RegisterServer{UUID: layout.UUID{byte(i + 1)}, Devices: []state.DeviceReport{{UUID: layout.UUID{1, byte(i + 1)}, Total: 100_000_000, Incarnation: 1}}})
	}
	w.newSession()
	v := w.create("v")
	for i := range segments {
		s := w.allocate(v, layout.DeviceID(1+i%3), layout.DeviceID(1+(i+1)%3))
		w.must(state.OpenSegments{Segments: []layout.SegmentID{s}})
		seal := w.sealed(s, 1)
		for j := range seal.Shards {
			seal.Shards[j].Length = 2_048_000
		}
		vol, _ := w.state.View().Volume(v)
		w.must(state.SealSegments{Volume: v, Epoch: vol.Epoch, Seals: []state.Seal{seal}})
	}
	w.must(state.MarkFinalized{Segments: w.segments()})
	return w
}

func (w *world) segments() (ids []layout.SegmentID) {
	for _, d := range w.state.View().Devices() {
		page, _ := w.state.View().SegmentsOnDevice(d.ID, 0, 0)
		for i := range page {
			if page[i].Placements[0].Device == d.ID {
				ids = append(ids, page[i].ID)
			}
		}
	}
	return ids
}

// tellHolds is a round of heartbeats: each device says what lies on it.
func (w *world) tellHolds() {
	for _, d := range w.state.View().Devices() {
		page, _ := w.state.View().SegmentsOnDevice(d.ID, 0, 0)
		w.planner.Holds(d.ID, uint64(len(page))*2_048_000)
	}
}

// rounds plans until no rebalance goes on, and gives how many moves were made and
// what the end's reason was. Tasks are carried out a plan late, like real ones.
func (w *world) rounds(fails func(n int) bool) (moves int, why string) {
	var running []Task
	for range 2000 {
		w.now += time.Second
		w.hearAll()
		w.planner.Kept(w.session, w.now)
		w.tellHolds()
		next := w.planner.Plan(w.state.View(), w.now)
		for _, task := range running {
			if r, ok := task.(Rebuild); ok {
				moves++
				if fails != nil && fails(moves) {
					w.planner.Done(task, false, w.now)
					continue
				}
				if !r.Balance || !r.Move {
					w.t.Fatalf("not a move of the rebalance: %+v", r)
				}
			}
			w.do(task)
			w.planner.Done(task, true, w.now)
		}
		running = next
		for _, task := range next {
			if e, ok := task.(EndRebalance); ok {
				why = e.Why
			}
		}
		if w.state.View().Cell().Rebalancing == 0 {
			return moves, why
		}
	}
	w.t.Fatalf("the rebalance goes on: %+v", w.planner.Fills(w.state.View()))
	return 0, ""
}

func (w *world) spread() int64 {
	w.hearAll()
	w.tellHolds()
	return BalanceOf(w.planner.Fills(w.state.View())).Spread
}

// TestARebalanceEvensDevicesOutAndEnds, with every third move failing, and through a
// change of the leader.
func TestARebalanceEvensDevicesOutAndEnds(t *testing.T) {
	w := uneven(t, 5, 45) // 45 segments of 2: 61 % on three devices, two empty
	if spread := w.spread(); spread < 500 {
		t.Fatalf("spread %d at the beginning", spread)
	}
	if tasks := w.planner.Plan(w.state.View(), w.now); len(tasks) != 0 {
		t.Fatalf("nobody asked for %v", show(tasks))
	}
	w.must(state.Rebalance{ID: w.next(), On: true})
	changed := false
	moves, why := w.rounds(func(n int) bool {
		if n == 10 && !changed { // its tasks are lost with it
			changed = true
			w.planner = New(DefaultLimits())
			w.hearAll()
			w.tellHolds()
		}
		return n%3 == 0
	})
	if spread := w.spread(); spread > BalanceGoal || moves < 30 || moves > 120 {
		t.Errorf("spread %d after %d moves", spread, moves)
	}
	if why != "devices are even" {
		t.Errorf("ended: %s", why)
	}
}

// TestARebalanceEndsWhereNothingCanMove: each of the two servers holds a shard of
// the only segment, which is open besides.
func TestARebalanceEndsWhereNothingCanMove(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	v := w.create("v")
	w.must(state.OpenSegments{Segments: []layout.SegmentID{w.allocate(v, 1, 2)}})
	w.hearAll()
	w.planner.Holds(1, 1<<39)
	w.planner.Holds(2, 1<<30)
	w.must(state.Rebalance{ID: w.next(), On: true})
	for range 5 {
		w.now += time.Second
		w.hearAll()
		w.planner.Kept(w.session, w.now)
		for _, task := range w.planner.Plan(w.state.View(), w.now) {
			w.do(task)
			w.planner.Done(task, true, w.now)
		}
	}
	if w.state.View().Cell().Rebalancing != 0 {
		t.Error("it goes on for ever")
	}
}
