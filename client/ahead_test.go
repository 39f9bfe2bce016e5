package client

import (
	"context"
	"testing"
	"time"

	"strake/client/internal/extent"
	"strake/internal/layout"
)

// TestAReadInAHurryDoesNotWaitForWhatIsFetchedInAnotherClass looks at who takes a chunk
// that is still being fetched, and one that is there.
func TestAReadInAHurryDoesNotWaitForWhatIsFetchedInAnotherClass(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	late, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	v := &Volume{class: layout.ClassTraining}
	for _, c := range []struct {
		name    string
		ctx     context.Context
		class   layout.Class
		fetched bool
		takes   bool
	}{
		{"of the stream", t.Context(), 0, false, true},
		{"with time", late, layout.ClassTraining, false, true},
		{"in another class", t.Context(), layout.ClassInference, false, false},
		{"with little time", soon, 0, false, false},
		{"in another class, of what is there", t.Context(), layout.ClassInference, true, true},
		{"with little time, of what is there", soon, 0, true, true},
	} {
		chunk := &aheadChunk{r: layout.Range{Count: 8}, left: 8, buf: (&buffers{}).get(8 * layout.BlockSize), done: make(chan struct{})}
		if c.fetched {
			close(chunk.done)
		}
		r := &readPlan{class: c.class, pieces: []readPiece{{extent.Extent{Range: layout.Range{Start: 2, Count: 4}}, 0}}}
		a := &readAhead{chunks: []*aheadChunk{chunk}}
		a.claim(r, v.hurried(c.ctx, r))
		if takes := len(r.kept) == 1; takes != c.takes || len(r.kept)+len(r.rest) != 1 {
			t.Errorf("a read %s: %d parts of the chunk, %d of the shards", c.name, len(r.kept), len(r.rest))
		}
	}
}
