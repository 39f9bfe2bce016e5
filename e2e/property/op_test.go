package property

import (
	"errors"
	"testing"
)

// TestAFailureIsShrunkToWhatItNeeds fails where a rollback follows a discard.
func TestAFailureIsShrunkToWhatItNeeds(t *testing.T) {
	run := func(ops []Op) error {
		discarded := false
		for _, o := range ops {
			discarded = discarded || o.Kind == Discard
			if discarded && o.Kind == Rollback {
				return errors.New("broken")
			}
		}
		return nil
	}
	ops := Draw(1, 300)
	short, err := Shrink(ops, run(ops), 500, run)
	if err == nil || len(short) != 2 || short[0].Kind != Discard || short[1].Kind != Rollback {
		t.Errorf("shrunk to\n%s%v", List(short), err)
	}
}

// TestEveryKindIsDrawn: a history of a test's length has all of them.
func TestEveryKindIsDrawn(t *testing.T) {
	seen := map[Kind]int{}
	for _, o := range Draw(3, 400) {
		seen[o.Kind]++
	}
	for k := range kinds {
		if seen[k] == 0 {
			t.Errorf("no %v", k)
		}
	}
}
