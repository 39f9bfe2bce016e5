package reconcile

import (
	"testing"

	"strake/internal/layout"
)

// TestARebuildHurriesWhenTwoShardsAreMissing, or when the last that may be is.
func TestARebuildHurriesWhenTwoShardsAreMissing(t *testing.T) {
	for m, want := range map[uint8][]bool{ // by how many shards are missing, from 0 on
		1: {false, true, true},
		2: {false, false, true, true},
		3: {false, false, true, true, true},
	} {
		for missing, urgent := range want {
			if got := Urgent(layout.Geometry{K: 4, M: m}, int(m)-missing); got != urgent {
				t.Errorf("4+%d with %d missing: urgent %v, want %v", m, missing, got, urgent)
			}
		}
	}
}
