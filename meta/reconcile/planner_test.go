package reconcile

import (
	"math/rand"
	"reflect"
	"testing"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

func (w *world) hearAll() {
	for _, s := range w.state.View().Servers() {
		w.planner.Heard(s.ID, w.now)
	}
}

// step plans once and carries every task out; each fails with the given chance.
func (w *world) step(rnd *rand.Rand, failing float64) int {
	w.now += 500 * time.Millisecond
	w.hearAll()
	tasks := w.planner.Plan(w.state.View(), w.now)
	for _, t := range tasks {
		if ok := rnd.Float64() >= failing; ok {
			w.do(t)
			w.planner.Done(t, true, w.now)
		} else {
			w.planner.Done(t, false, w.now)
		}
	}
	return len(tasks)
}

func TestPlansSettle(t *testing.T) {
	limits := DefaultLimits()
	limits.PurgeAfter = 100 * time.Second
	limits.Scan, limits.Plan, limits.InFlight = 7, 9, 4 // small, so that bounds and turns matter
	for seed := range int64(20) {
		rnd := rand.New(rand.NewSource(seed))
		w := newWorld(t, limits, 4)
		var volumes []layout.VolumeID
		for range 300 {
			w.disturb(rnd, &volumes)
			if rnd.Intn(4) == 0 {
				w.step(rnd, 0.3)
			}
		}
		quiet, plans := 0, 0
		for ; quiet < 300; plans++ { // longer than every wait together
			if w.step(rnd, 0) == 0 {
				quiet++
			} else {
				quiet = 0
			}
			if plans > 5000 {
				t.Fatalf("seed %d: plans do not settle", seed)
			}
		}
		w.checkSettled(seed)
	}
}

func (w *world) checkSettled(seed int64) {
	view := w.state.View()
	allocated, _ := view.Allocated(0, 0)
	unfinalized, _ := view.Unfinalized(0, 0)
	deletable, _ := view.Deletable(0, 0)
	orphans, _ := view.Unrecovered(0, 0)
	removed, _ := view.RemovedVolumes("", "", 0)
	purged, _ := view.Purged(0, 0)
	if n := len(allocated) + len(unfinalized) + len(deletable) + len(orphans) + len(removed) + len(purged) + len(view.Sessions()); n > 0 {
		w.t.Fatalf("seed %d: settled with %d allocated, %d unfinalized, %d deletable, %d unrecovered, %d removed, %d purged, %d silent sessions", seed,
			len(allocated), len(unfinalized), len(deletable), len(orphans), len(removed), len(purged), len(view.Sessions()))
	}
	if c := view.Counts(); c.ServersUp != c.Servers {
		w.t.Fatalf("seed %d: %d of %d servers up though all are heard", seed, c.ServersUp, c.Servers)
	}
}

func TestTheSameCallsGiveTheSamePlans(t *testing.T) {
	history := func() (plans [][]Task) {
		rnd := rand.New(rand.NewSource(5))
		w := newWorld(t, DefaultLimits(), 4)
		var volumes []layout.VolumeID
		for range 200 {
			w.disturb(rnd, &volumes)
			w.now += 700 * time.Millisecond
			w.planner.Heard(layout.ServerID(1+rnd.Intn(4)), w.now)
			tasks := w.planner.Plan(w.state.View(), w.now)
			plans = append(plans, tasks)
			for _, task := range tasks {
				if ok := rnd.Intn(2) == 0; ok {
					w.do(task)
					w.planner.Done(task, true, w.now)
				} else {
					w.planner.Done(task, false, w.now)
				}
			}
		}
		return plans
	}
	if a, b := history(), history(); !reflect.DeepEqual(a, b) {
		t.Error("equal histories gave different plans")
	}
}

func TestATaskIsNotHandedOutTwice(t *testing.T) {
	limits := DefaultLimits()
	limits.InFlight = 3
	w := newWorld(t, limits, 4)
	v := w.create("v")
	for range 10 {
		w.must(state.DropSegments{Segments: []layout.SegmentID{w.allocate(v, 1, 2)}})
	}
	running := map[key]Task{}
	for range 20 {
		w.now += time.Second
		w.hearAll()
		w.planner.Kept(w.session, w.now)
		for _, task := range w.planner.Plan(w.state.View(), w.now) {
			if _, twice := running[task.key()]; twice {
				t.Fatalf("%T%+v is running", task, task)
			}
			running[task.key()] = task
		}
		if len(running) != 3 {
			t.Fatalf("%d tasks run, the bound is 3", len(running))
		}
	}
	for _, task := range running {
		w.planner.Done(task, false, w.now)
	}
	if again := w.planner.Plan(w.state.View(), w.now); len(again) != 3 || running[again[0].key()] != nil {
		t.Errorf("after failures got %v, want three others while these wait", again)
	}
}

func TestAFailingTaskWaitsLongerEachTime(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 4)
	v := w.create("v")
	w.must(state.OpenSegments{Segments: []layout.SegmentID{w.allocate(v, 1, 2)}})
	w.must(state.ExpireSession{Session: w.session})
	var waits []time.Duration
	servers := map[layout.ServerID]bool{}
	last := w.now
	for w.now < 200*time.Second {
		w.now += 100 * time.Millisecond
		w.hearAll()
		for _, task := range w.planner.Plan(w.state.View(), w.now) {
			servers[task.(Recover).Server] = true
			waits = append(waits, (w.now - last).Round(time.Second))
			last = w.now
			w.planner.Done(task, false, w.now)
		}
	}
	want := []time.Duration{2, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30}
	for i := range want {
		want[i] *= time.Second
	}
	if !reflect.DeepEqual(waits, want) || len(servers) != 4 {
		t.Errorf("waits %v on %d servers, want %v on all 4", waits, len(servers), want)
	}
}
