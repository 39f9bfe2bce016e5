package client

import (
	"slices"
	"testing"

	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// TestASegmentThatStillTakesStripesIsNotRetiredAsEmpty: a stripe that was on its way
// when the map was frozen may move there, with its old seq, and the segment may be
// sealed before the root is recorded. The root would cover it, and name it.
func TestASegmentThatStillTakesStripesIsNotRetiredAsEmpty(t *testing.T) {
	const spare, used, sealed = layout.SegmentID(7), layout.SegmentID(8), layout.SegmentID(3)
	v := &Volume{tree: extent.New()}
	w := &writer{v: v, core: write.New(write.Config{Cell: 1, Volume: 1, Epoch: 1, Geometry: layout.Geometry{K: 2, M: 1}})}
	if err := w.core.Submit(0, write.Write{ID: 1, Ranges: []stripe.Range{{Count: 1, Kind: stripe.Discard}}}); err != nil {
		t.Fatal(err)
	}
	for _, a := range w.core.Take(nil) {
		if a.Kind == write.Allocate {
			w.core.Granted(0, a.Allocation.Request, []write.Segment{grant(used), grant(spare)}, nil)
		}
	}
	r := clean.NewRetiring(spare, used, sealed)
	would := func() []layout.SegmentID {
		r.Look(v.tree, w.core.Appendable)
		return r.Wish(nil)
	}
	if got := would(); !slices.Equal(got, []layout.SegmentID{sealed}) {
		t.Errorf("would retire %v", got)
	}
	w.core.ServerDown(0, 1) // the one in use is left for good
	if got := would(); !slices.Equal(got, []layout.SegmentID{sealed, used}) {
		t.Errorf("would retire %v", got)
	}
}

func grant(id layout.SegmentID) write.Segment {
	s := write.Segment{ID: id, Geometry: layout.Geometry{K: 2, M: 1}, Length: 4 << 20}
	for i := range 3 {
		s.Shards = append(s.Shards, write.Shard{Server: layout.ServerID(i + 1), Device: layout.DeviceID(i + 1), Generation: 1, Incarnation: 1})
	}
	return s
}
