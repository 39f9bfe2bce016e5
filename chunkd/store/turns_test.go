package store

import (
	"bytes"
	"slices"
	"testing"

	"strake/internal/errs"
	"strake/proto/frame"
)

// fakeTurns gives every turn at once, but for the one it refuses.
type fakeTurns struct {
	piece  int
	refuse int // number of the turn, from 1; 0: none
	taken  []int
}

func (f *fakeTurns) Piece() int { return f.piece }

func (f *fakeTurns) Wait() error { return nil }

func (f *fakeTurns) Turn(n int, work func() error) error {
	if f.taken = append(f.taken, n); len(f.taken) == f.refuse {
		return errs.New(errs.Canceled, "", "no turn")
	}
	return work()
}

func TestALargeUnitTakesATurnForEachPiece(t *testing.T) {
	for _, c := range []struct {
		piece int
		want  []int
	}{{16 << 10, []int{16 << 10, 16 << 10, 4 << 10}}, {5000, slices.Repeat([]int{4096}, 9)}, {0, slices.Repeat([]int{4096}, 9)}, {1 << 20, []int{36 << 10}}} {
		s := opened(t, formatted(t, newMem()))
		ok(t, s.Create(testSpec(1)))
		turns := &fakeTurns{piece: c.piece}
		a := unitOf(1, 5, 1, 0, 36<<10)
		a.Turns, a.Durable = turns, true
		ok(t, s.Append(a))
		if !slices.Equal(turns.taken, c.want) {
			t.Errorf("pieces of %d: turns of %v, want %v", c.piece, turns.taken, c.want)
		}
		ok(t, s.Check())
		ok(t, s.Close())
	}
}

// TestARefusedTurnLeavesNothing: the unit is gone, its place reads as zeros, and
// takes another.
func TestARefusedTurnLeavesNothing(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	defer s.Close()
	ok(t, s.Create(testSpec(1)))
	ok(t, s.Append(unitOf(1, 5, 1, 0, 36<<10)))
	lost := unitOf(1, 5, 2, 36<<10, 36<<10)
	lost.Turns = &fakeTurns{piece: 16 << 10, refuse: 2}
	is(t, s.Append(lost), errs.Canceled)
	ok(t, s.Append(unitOf(1, 5, 3, 72<<10, 36<<10)))
	synced(t, s, 1)
	got := make([]byte, 36<<10)
	_, err := s.Read(testRef(1), []frame.ReadRange{{Offset: 36 << 10, Length: 36 << 10}}, got)
	ok(t, err)
	if !bytes.Equal(got, make([]byte, len(got))) {
		t.Error("bytes of the lost unit are left")
	}
	ok(t, s.Check())
	lost.Turns = nil
	ok(t, s.Append(lost))
	synced(t, s, 1)
	ok(t, s.Check())
}
