package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
)

// plans makes plans for a while and carries them out.
func (w *world) plans(seconds int) {
	for range seconds {
		w.now += time.Second
		w.hearAll()
		w.planner.Kept(w.session, w.now)
		for _, task := range w.planner.Plan(w.state.View(), w.now) {
			w.do(task)
			w.planner.Done(task, true, w.now)
		}
	}
}

// halfEmpty is a volume without a writer that stores 96 MiB, of which blocks are live
// by its newest root.
func (w *world) halfEmpty(name string, blocks uint64) layout.VolumeID {
	id := w.filled(name)
	w.root(id, blocks)
	w.released(id)
	return id
}

// filled is a volume with a writer that stores 96 MiB and has no root.
func (w *world) filled(name string) layout.VolumeID {
	id := w.create(name)
	for range 3 {
		w.write(id)
	}
	return id
}

// write adds a segment to a volume that has a writer.
func (w *world) write(id layout.VolumeID) {
	s := w.allocate(id, 1, 2)
	w.must(state.OpenSegments{Segments: []layout.SegmentID{s}})
	seal := w.sealed(s, 1)
	for i := range seal.Shards {
		seal.Shards[i].Length = 4 << 20
	}
	v, _ := w.state.View().Volume(id)
	w.must(state.SealSegments{Volume: id, Epoch: v.Epoch, Seals: []state.Seal{seal}})
}

func (w *world) released(id layout.VolumeID) {
	v, _ := w.state.View().Volume(id)
	w.must(state.ReleaseLease{Session: w.session, Volume: id, Epoch: v.Epoch, LastSeq: v.LastSeq})
}

func (w *world) root(id layout.VolumeID, live uint64) {
	v, _ := w.state.View().Volume(id)
	w.must(state.RecordRoot{Volume: id, Epoch: v.Epoch, Root: state.Root{Number: v.Root.Number + 1, Covers: v.LastSeq, Page: []byte{1}, Live: live, Own: live, Pages: 1}})
}

func TestAVolumeWithGarbageAndNoWriterIsCleanedOnceUntilItChanges(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	full := w.halfEmpty("full", 3*1024)
	v := w.halfEmpty("v", 1024)
	w.plans(5)
	if len(w.cleaned) != 0 {
		t.Fatalf("cleaned at once: %+v", w.cleaned)
	}
	w.plans(60)
	if len(w.cleaned) != 1 || w.cleaned[0].Volume != v || !strings.Contains(w.cleaned[0].Reason, "garbage") {
		t.Fatalf("cleaned %+v; volume %d is full, %d is not", w.cleaned, full, v)
	}
	w.must(state.AcquireLease{ID: w.next(), Session: w.session, Volume: state.VolumeRef{ID: v}})
	w.root(v, 1000)
	w.plans(60)
	if len(w.cleaned) != 1 {
		t.Fatalf("cleaned %+v while it is written", w.cleaned)
	}
	w.released(v)
	w.plans(60)
	if len(w.cleaned) != 2 {
		t.Fatalf("cleaned %+v after it was written", w.cleaned)
	}
	w.planner = New(DefaultLimits()) // a new leader knows no better than to look again
	w.plans(60)
	if len(w.cleaned) != 3 {
		t.Fatalf("cleaned %+v by two leaders", w.cleaned)
	}
}

func TestAVolumeWhoseWriterWasGoneBeforeItsFirstRootIsCleanedOnce(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	v := w.filled("v")
	w.released(v)
	w.released(w.create("small"))
	w.plans(60)
	if len(w.cleaned) != 1 || w.cleaned[0].Volume != v || !strings.Contains(w.cleaned[0].Reason, "counted") {
		t.Fatalf("cleaned %+v", w.cleaned)
	}
	w.must(state.AcquireLease{ID: w.next(), Session: w.session, Volume: state.VolumeRef{ID: v}})
	w.root(v, 3*1024) // as its janitor may record it
	w.released(v)
	w.plans(60)
	if len(w.cleaned) != 1 {
		t.Fatalf("cleaned %+v, and it holds no garbage", w.cleaned)
	}
}

// TestTagsThatCantBeReadHoldUpNoOthers: each that fails waits, and the next has its turn.
func TestTagsThatCantBeReadHoldUpNoOthers(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	ref := state.VolumeRef{ID: w.filled("v")}
	const tags = 6
	for i := range tags {
		w.must(state.CreateSnapshots{ID: w.next(), Tag: true, Items: []state.SnapshotItem{{Volume: ref, Name: fmt.Sprint("t", i), Epoch: 1, Seq: 3}}})
	}
	tried := map[layout.SnapshotID]bool{}
	for range 10 {
		w.now += time.Second
		w.hearAll()
		w.planner.Kept(w.session, w.now)
		at := 0
		for _, task := range w.planner.Plan(w.state.View(), w.now) {
			if d, is := task.(Digest); is {
				at++
				tried[d.Snapshot] = true
				w.planner.Done(task, false, w.now)
				continue
			}
			w.do(task)
			w.planner.Done(task, true, w.now)
		}
		if at > w.planner.limits.Digests {
			t.Fatalf("%d digests at once", at)
		}
	}
	if len(tried) != tags {
		t.Errorf("of %d tags that can't be read %d were tried", tags, len(tried))
	}
}

// TestSpaceTellsApartWhatIsNotAmplified: volumes whose live data nobody counted, and
// removed ones, would pass for garbage.
func TestSpaceTellsApartWhatIsNotAmplified(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	w.halfEmpty("counted", 1024)
	w.filled("uncounted")
	w.must(state.RemoveVolume{ID: w.next(), Volume: state.VolumeRef{ID: w.halfEmpty("removed", 1024)}})
	const stored = 3 * 2 * 4 << 20 // segments, shards and bytes of each
	got := w.state.View().Space()
	if want := (state.Space{Live: 1024 * layout.BlockSize, Stored: stored, Garbage: got.Garbage, Uncounted: stored, Removed: stored}); got != want || got.Garbage == 0 || got.Garbage >= stored {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestTwoBranchesOfARemovedSnapshotAreFlattenedTogether, once what it holds is worth both
// copies: neither alone gives it back.
func TestTwoBranchesOfARemovedSnapshotAreFlattenedTogether(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	v := w.halfEmpty("v", 1024) // 96 MiB stored, 8 MiB live on two shards
	ref := state.VolumeRef{ID: v}
	w.must(state.CreateSnapshots{ID: w.next(), Items: []state.SnapshotItem{{Volume: ref, Name: "a"}}})
	var clones []layout.VolumeID
	for _, name := range []string{"x", "y"} {
		clones = append(clones, w.must(state.CloneVolume{ID: w.next(), Volume: ref, Snapshot: "a", Name: name}).Volume)
	}
	w.plans(10)
	if v, _ := w.state.View().Volume(clones[0]); v.Flattening {
		t.Fatal("flattened though the snapshot stands")
	}
	w.must(state.RemoveVolume{ID: w.next(), Volume: ref, Now: true})
	w.plans(10)
	for _, id := range clones {
		if v, _ := w.state.View().Volume(id); !v.Flattening {
			t.Errorf("the clone %s still stands on a volume that is gone: %+v", v.Name, v)
		}
	}
}

// TestSnapshotsThatRollHaveAVolumeCleanedAgain: the removal of the oldest snapshot tells
// that those that stand will go too; one that lasts, or is hidden, keeps that from being
// taken for granted.
func TestSnapshotsThatRollHaveAVolumeCleanedAgain(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	v := w.halfEmpty("v", 1024)
	ref := state.VolumeRef{ID: v}
	var seqs []layout.Seq
	snapshot := func(name string) {
		w.must(state.CreateSnapshots{ID: w.next(), Items: []state.SnapshotItem{{Volume: ref, Name: name}}})
		f, _ := w.state.View().FindSnapshot(ref, name)
		seqs = append(seqs, f.Seq)
		w.must(state.AcquireLease{ID: w.next(), Session: w.session, Volume: ref})
		w.write(v)
		w.released(v)
	}
	remove := func(name string) layout.Held {
		f, err := w.state.View().FindSnapshot(ref, name)
		if err != nil {
			t.Fatal(err)
		}
		w.must(state.RemoveSnapshot{ID: w.next(), Volume: ref, Name: name})
		w.planner.SnapshotRemoved(w.state.View(), &f)
		return w.planner.Held(w.state.View(), v)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		snapshot(name)
	}
	w.plans(60)
	cleaned := len(w.cleaned)
	if held := remove("b"); held != (layout.Held{Newest: seqs[3]}) {
		t.Errorf("after a removal in the middle: %+v of %v", held, seqs)
	}
	w.plans(60)
	if len(w.cleaned) != cleaned {
		t.Errorf("cleaned again though nothing can be had: %+v", w.cleaned)
	}
	if held := remove("a"); held != (layout.Held{Newest: seqs[3], Outlived: seqs[0]}) {
		t.Errorf("after the oldest was removed: %+v of %v", held, seqs)
	}
	w.plans(60)
	if len(w.cleaned) != cleaned+1 {
		t.Errorf("not cleaned once more: %+v", w.cleaned)
	}
	w.must(state.CloneVolume{ID: w.next(), Volume: ref, Snapshot: "c", Name: "w"})
	if held := remove("c"); held != (layout.Held{Newest: seqs[3]}) {
		t.Errorf("with a hidden snapshot that is the oldest: %+v of %v", held, seqs)
	}
}

// TestATagThatIsTheOldestLasts, unless tags went before it.
func TestATagThatIsTheOldestLasts(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	v := w.filled("v")
	ref := state.VolumeRef{ID: v}
	var seqs []layout.Seq
	for i, tag := range []bool{false, true, true} {
		w.must(state.CreateSnapshots{ID: w.next(), Tag: tag, Items: []state.SnapshotItem{{Volume: ref, Name: string(rune('a' + i)), Epoch: 1, Seq: layout.Seq(i + 1)}}})
		f, _ := w.state.View().FindSnapshot(ref, string(rune('a'+i)))
		seqs = append(seqs, f.Seq)
	}
	for i, want := range []layout.Seq{0, seqs[1]} {
		f, _ := w.state.View().FindSnapshot(ref, string(rune('a'+i)))
		w.must(state.RemoveSnapshot{ID: w.next(), Volume: ref, Name: f.Name})
		w.planner.SnapshotRemoved(w.state.View(), &f)
		if held := w.planner.Held(w.state.View(), v); held != (layout.Held{Newest: seqs[2], Outlived: want}) {
			t.Errorf("after the removal of %s: %+v of %v", f.Name, held, seqs)
		}
	}
	w.must(state.HoldTag{ID: w.next(), Volume: ref, Name: "c", By: "somebody"})
	if held := w.planner.Held(w.state.View(), v); held.Outlived != 0 {
		t.Errorf("with a tag that is held: %+v", held)
	}
}

func TestAVolumeIsFlattenedAndSnapshotsThatGoHaveItCleanedAgain(t *testing.T) {
	w := newWorld(t, DefaultLimits(), 2)
	v := w.halfEmpty("v", 1024)
	w.must(state.CreateSnapshots{ID: w.next(), Items: []state.SnapshotItem{{Volume: state.VolumeRef{ID: v}, Name: "s"}}})
	w.plans(60)
	if len(w.cleaned) != 1 {
		t.Fatalf("cleaned %+v", w.cleaned)
	}
	w.must(state.RemoveSnapshot{ID: w.next(), Volume: state.VolumeRef{ID: v}, Name: "s"})
	w.plans(60)
	if len(w.cleaned) != 2 {
		t.Fatalf("cleaned %+v after the snapshot went", w.cleaned)
	}
	w.must(state.CreateSnapshots{ID: w.next(), Items: []state.SnapshotItem{{Volume: state.VolumeRef{ID: v}, Name: "t"}}})
	clone := w.must(state.CloneVolume{ID: w.next(), Volume: state.VolumeRef{ID: v}, Snapshot: "t", Name: "w"}).Volume
	w.cleaned = nil
	w.must(state.FlattenVolume{Volume: state.VolumeRef{ID: clone}})
	w.plans(30)
	if n := fmt.Sprint(w.cleaned); len(w.cleaned) != 1 || w.cleaned[0].Volume != clone || !strings.Contains(n, "flattened") {
		t.Fatalf("handed out %v", n)
	}
}
