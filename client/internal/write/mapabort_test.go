package write_test

import (
	"testing"
	"time"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
)

// TestAnAbortedMapCheckpointLetsTheNextBegin aborts one whose pages wait for a
// segment, and one that waits for its last page.
func TestAnAbortedMapCheckpointLetsTheNextBegin(t *testing.T) {
	for _, finish := range []bool{false, true} {
		w := write.NewMap(write.Config{Epoch: 1, Geometry: layout.Geometry{K: 2, M: 1}})
		for round := range 2 {
			if err := w.Begin(0); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := w.Place(0, []layout.BlockCount{1, 2}); err != nil {
				t.Fatal(err)
			}
			if finish {
				w.Finish(0)
			}
			w.Take(nil)
			w.Abort(time.Second, errs.New(errs.Corrupt, "load page", "it is rotten"))
			aborted := 0
			for _, a := range w.Take(nil) {
				if a.Kind == write.Aborted && errs.KindOf(a.Err) == errs.Corrupt {
					aborted++
				}
			}
			if aborted != 1 {
				t.Errorf("round %d: told %d times", round, aborted)
			}
			if err := w.Check(); err != nil {
				t.Error(err)
			}
		}
		w.Abort(time.Second, errs.Corrupt) // none is under way
		if got := w.Take(nil); len(got) != 0 {
			t.Errorf("an abort of nothing gave %v", got)
		}
	}
}
