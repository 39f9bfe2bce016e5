package reconcile

import (
	"reflect"
	"testing"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// live lets seconds pass, hearing the servers; every task is carried out and
// given, except those that skip says are to fail.
func (w *world) live(seconds int, skip func(Task) bool, servers ...layout.ServerID) (tasks []Task) {
	for range seconds {
		w.now += time.Second
		w.planner.Kept(w.session, w.now)
		for _, id := range servers {
			w.planner.Heard(id, w.now)
		}
		for _, task := range w.planner.Plan(w.state.View(), w.now) {
			tasks = append(tasks, task)
			fails := skip != nil && skip(task)
			if !fails {
				w.do(task)
			}
			w.planner.Done(task, !fails, w.now)
		}
	}
	return tasks
}

// TestASegmentThatLostAShardWaitsForNoOther: one server is dead, another in a short
// outage. The segment is finalized with what is left, or it could not be rebuilt
// before the second comes back.
func TestASegmentThatLostAShardWaitsForNoOther(t *testing.T) {
	limits := DefaultLimits()
	limits.RebuildAfter = time.Minute
	w := newWorld(t, limits, 3)
	v := w.must(state.CreateVolume{ID: w.next(), Name: "v", SizeBytes: 1 << 20, Geometry: layout.Geometry{K: 1, M: 2}}).Volume
	w.must(state.AcquireLease{ID: w.next(), Session: w.session, Volume: state.VolumeRef{ID: v}})
	s := w.allocate(v, 1, 2, 3)
	w.must(state.OpenSegments{Segments: []layout.SegmentID{s}})
	w.live(90, nil, 1, 2) // server 3 is given up
	w.live(10, nil, 1)
	vol, _ := w.state.View().Volume(v)
	w.must(state.SealSegments{Volume: v, Epoch: vol.Epoch, Seals: []state.Seal{w.sealed(s, 1)}})
	var shards []Shard
	for _, task := range w.live(5, nil, 1) {
		if f, ok := task.(Finalize); ok {
			shards = f.Shards
		}
	}
	seg, _ := w.state.View().Segment(s)
	if want := []Shard{{Index: 0, Server: 1, Placement: seg.Placements[0]}}; !reflect.DeepEqual(shards, want) {
		t.Errorf("finalized with %v, want %v", shards, want)
	}
}

// TestAServerThatIsHeardIsNotGivenUp, however long its way back up takes.
func TestAServerThatIsHeardIsNotGivenUp(t *testing.T) {
	limits := DefaultLimits()
	limits.RebuildAfter = time.Minute
	w := newWorld(t, limits, 3)
	slow := func(task Task) bool { m, ok := task.(MarkServer); return ok && m.Up }
	w.live(50, slow, 1, 2)
	for _, task := range w.live(100, slow, 1, 2, 3) {
		if g, ok := task.(GiveUp); ok {
			t.Fatalf("%+v of a server that is heard", g)
		}
	}
}
