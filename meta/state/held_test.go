package state

import (
	"sync"
	"testing"

	"strake/internal/layout"
)

// TestLooksAtWhatSnapshotsHoldShareAView looks at one view from several sides at once;
// the race detector judges.
func TestLooksAtWhatSnapshotsHoldShareAView(t *testing.T) {
	v := frozenVolume(t, 8, 10).View()
	list, _ := v.Snapshots(1, 0, 0)
	if len(list) != 10 {
		t.Fatalf("%d snapshots", len(list))
	}
	vol, _ := v.Volume(1)
	var looks sync.WaitGroup
	for range 4 {
		looks.Go(func() {
			for i := range list {
				v.Frees(&list[i])
			}
			v.HeldBySnapshots(&vol)
		})
	}
	looks.Wait()
}

// TestWhatARemovalFreesIsWhatWasTold: before random removals, of snapshots in the middle
// too, Frees tells the bytes of the segments that nothing needs afterwards.
func TestWhatARemovalFreesIsWhatWasTold(t *testing.T) {
	removals, freeing := 0, 0
	for seed := range int64(4 * seeds) {
		history(t, seed, length, func(s *State, _ Command, _ Result) {
			view := s.View()
			if view.Applied()%8 != 0 {
				return
			}
			before := neededBytes(s.t)
			s.t.frozen.Scan(func(id layout.SnapshotID, f *Frozen) bool {
				if f.Removed {
					return true
				}
				told, _ := view.Frees(f)
				after := &State{t: s.t.clone()}
				after.t.removeFrozen(after.t.snapshotOf(id), &Result{})
				if freed := before - neededBytes(after.t); freed != told {
					t.Fatalf("seed %d index %d: removing %+v frees %d bytes, told were %d", seed, view.Applied(), f, freed, told)
				}
				if removals++; told > 0 {
					freeing++
				}
				return true
			})
		})
	}
	if freeing < 100 {
		t.Errorf("of %d removals %d freed anything: the test tests little", removals, freeing)
	}
}

// neededBytes is what the sealed segments hold that a head or a snapshot needs.
func neededBytes(t *tables) (n uint64) {
	t.volumes.Scan(func(id layout.VolumeID, v *Volume) bool {
		t.byVolume.ascend(uint64(id), 0, func(m uint64) bool {
			if s := t.segment(layout.SegmentID(m)); (s.State == Sealed || s.State == Finalized) && t.needed(s, v) {
				n += s.Seal.storedBytes()
			}
			return true
		})
		return true
	})
	return n
}
