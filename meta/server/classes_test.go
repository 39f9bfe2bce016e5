package server

import (
	"testing"

	"strake/internal/layout"
	"strake/internal/qos"
	"strake/meta/state"
)

// TestBackgroundWorkWeighsMoreWhileDataIsInDanger: nothing else changes, chunk
// servers learn of it by another version, and people's figure stays on record.
func TestBackgroundWorkWeighsMoreWhileDataIsInDanger(t *testing.T) {
	s := state.New()
	if r := s.Apply(1, state.FormCell{Cell: 1}); r.Err != nil {
		t.Fatal(r.Err)
	}
	calm, danger := classesSaid(s.View(), false), classesSaid(s.View(), true)
	for i, c := range calm {
		want := c.Weight
		if c.Number == uint32(layout.ClassBackground) {
			want = int64(qos.Defaults(layout.ClassBackground).Weight) * dangerWeight
		}
		if d := danger[i]; d.Number != c.Number || d.Weight != want || d.TargetNs != c.TargetNs {
			t.Errorf("class %s: weight %d, in danger %d, want %d", c.Name, c.Weight, d.Weight, want)
		}
	}
	if len(calm) < 4 || classesSaid(s.View(), false)[0].Weight != calm[0].Weight {
		t.Errorf("%d classes", len(calm))
	}
	seen := map[uint64]bool{}
	for _, changed := range []uint64{0, 1, 2, 77} {
		for _, danger := range []bool{false, true} {
			v := saidVersion(changed, danger)
			if seen[v] || (v == 0) != (changed == 0 && !danger) {
				t.Errorf("version %d, danger %v: %d stands for something else too", changed, danger, v)
			}
			seen[v] = true
		}
	}
}
