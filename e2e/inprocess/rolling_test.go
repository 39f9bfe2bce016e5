package inprocess

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSnapshotsThatRollLetOldSpaceGo takes a snapshot after each round of random
// overwrites and removes the oldest, as backups do: the newest always holds what is old,
// and yet what is dead in it comes back, while each snapshot stays what it was.
func TestSnapshotsThatRollLetOldSpaceGo(t *testing.T) {
	long(t)
	const size, rounds, kept = 16 * mib, 24, 2
	c := Start(t, Options{Client: unattended})
	cell, v := volume(t, c, size, 2, 1)
	model := pattern(1, size)
	write(t, v, model, 0)
	frozen := map[string][]byte{}
	r := rand.New(rand.NewPCG(1, 1))
	for round := range rounds {
		for range size / block / 4 {
			at := r.Int64N(size/block) * block
			p := pattern(r.Uint64(), block)
			copy(model[at:], p)
			v.WriteAsync(p, at)
		}
		flush(t, v)
		name := fmt.Sprintf("v@s%d", round)
		freeze(t, cell, name)
		frozen[name] = slices.Clone(model)
		if old := fmt.Sprintf("v@s%d", round-kept); frozen[old] != nil {
			frozenAs(t, cell, old, frozen[old], 0)
			unfreeze(t, cell, old)
			delete(frozen, old)
		}
		if _, err := v.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, v, model, 0)
	for name, want := range frozen {
		frozenAs(t, cell, name, want, 0)
	}
	closed(t, v)
	// The head's content, what each of the snapshots that stand may have of its own, and
	// as much again: what is cleaned is held a while.
	const most = 2 * (size + (kept+1)*size/4) * 3 / 2
	c.Eventually("what rolled out of the snapshots comes back", func() error {
		if n := storedOf(t, cell); n > most {
			return fmt.Errorf("%d MiB are stored for %d MiB of data and %d snapshots, at most %d are fine", n/mib, size/mib, kept, most/mib)
		}
		return nil
	})
	t.Logf("%d MiB stored, at most %d", storedOf(t, cell)/mib, most/mib)
}
