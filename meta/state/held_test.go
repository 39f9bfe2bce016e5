package state

import (
	"sync"
	"testing"
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
