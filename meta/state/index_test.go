package state

import (
	"math/rand"
	"slices"
	"testing"
)

func TestAnIndexIsAnOrderedSetOfPairs(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	x, want := newIndex(), map[[2]uint64]bool{}
	var old index
	var oldWant []uint64
	list := func(x index, owner, after uint64) (out []uint64) {
		x.ascend(owner, after, func(m uint64) bool { out = append(out, m); return true })
		return out
	}
	for i := range 60000 {
		owner, member := uint64(rnd.Intn(3)), uint64(1+rnd.Intn(9000))
		if rnd.Intn(3) > 0 != (i > 30000) { // grows past the list form, then shrinks back
			x.add(owner, member)
			want[[2]uint64{owner, member}] = true
		} else {
			x.remove(owner, member)
			delete(want, [2]uint64{owner, member})
		}
		if i == 20000 {
			old, oldWant = x.copy(), list(x, 1, 0)
		}
		if i%5000 != 0 {
			continue
		}
		for owner := range uint64(3) {
			after := uint64(rnd.Intn(9000))
			var members []uint64
			for p := range want {
				if p[0] == owner && p[1] > after {
					members = append(members, p[1])
				}
			}
			slices.Sort(members)
			if got := list(x, owner, after); !slices.Equal(got, members) {
				t.Fatalf("step %d owner %d after %d: %d members, want %d", i, owner, after, len(got), len(members))
			}
			if x.owns(owner) != (len(list(x, owner, 0)) > 0) {
				t.Fatalf("step %d: owns(%d) is wrong", i, owner)
			}
		}
	}
	if got := list(old, 1, 0); !slices.Equal(got, oldWant) {
		t.Errorf("a copy changed with the index: %d members, had %d", len(got), len(oldWant))
	}
}
