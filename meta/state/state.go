package state

import (
	"strake/internal/errs"
)

// State is the whole machine. It has one writer: the caller serialises Apply,
// View and Snapshot. What View and Snapshot return is immutable and may be read
// from any goroutine while Apply goes on.
type State struct {
	t    *tables
	view *View // of the current tables; nil once they changed
}

// New gives the empty state, before FormCell.
func New() *State { return &State{t: newTables()} }

// Apply carries out the command that stands at index of the log. It either
// changes the state and says what happened, or refuses and changes nothing but
// the index. The same commands at the same indexes give the same state and the
// same results, bit for bit.
func (s *State) Apply(index uint64, cmd Command) Result {
	s.view = nil
	if index <= s.t.applied {
		return refused(errs.New(errs.Internal, "apply command", "log index %d comes after %d", index, s.t.applied))
	}
	s.t.applied = index
	return s.t.dispatch(cmd)
}

// View gives the state as it is now, unchanging. It costs a few allocations
// whatever the size, and nothing while no command was applied in between.
func (s *State) View() *View {
	if s.view == nil {
		s.view = &View{t: s.t.clone()}
	}
	return s.view
}

// Snapshot gives what WriteTo needs to write the state as it is now. O(1).
func (s *State) Snapshot() *Snapshot { return &Snapshot{view: s.View()} }
