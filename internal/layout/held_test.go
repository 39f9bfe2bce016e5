package layout

import "testing"

func TestWhatSnapshotsHoldAndWhatRollsOn(t *testing.T) {
	for _, test := range []struct {
		held         Held
		first        Seq
		holds, rolls bool
	}{
		{Held{}, 1, false, false},
		{Held{Newest: 30}, 30, true, false},
		{Held{Newest: 30}, 31, false, false},
		{Held{Newest: 30, Outlived: 10}, 10, true, true},
		{Held{Newest: 30, Outlived: 10}, 11, true, false},
		{Held{Outlived: 10}, 10, false, false}, // none is left
	} {
		if got := test.held.Holds(test.first); got != test.holds {
			t.Errorf("%+v holds %d: %v", test.held, test.first, got)
		}
		if got := test.held.Rolls(test.first); got != test.rolls {
			t.Errorf("%+v rolls %d: %v", test.held, test.first, got)
		}
	}
}
