package server

import (
	"io"
	"sync"

	"strake/internal/errs"
	"strake/meta/state"
)

// Machine is the replicated state with what a shell needs round it: it decodes
// commands, hands out views, and passes on what happened.
type Machine struct {
	happened func([]state.Event) // called in order, after each command; must not block

	mu sync.Mutex
	st *state.State // guarded by mu
}

// NewMachine makes an empty machine. happened may be nil.
func NewMachine(happened func([]state.Event)) *Machine {
	if happened == nil {
		happened = func([]state.Event) {}
	}
	return &Machine{happened: happened, st: state.New()}
}

// Apply implements replica.Machine; the result is a state.Result.
func (m *Machine) Apply(index uint64, command []byte) (any, error) {
	cmd, err := state.Decode(command)
	if err != nil {
		return nil, errs.Wrap(err, "apply log entry %d", index)
	}
	m.mu.Lock()
	result := m.st.Apply(index, cmd)
	m.mu.Unlock()
	if len(result.Events) > 0 {
		m.happened(result.Events)
	}
	return result, nil
}

// Snapshot implements replica.Machine.
func (m *Machine) Snapshot() (io.WriterTo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.st.Snapshot(), nil
}

// Restore implements replica.Machine.
func (m *Machine) Restore(r io.Reader) error {
	st, err := state.Restore(r)
	if err != nil {
		return errs.Wrap(err, "restore the snapshot")
	}
	m.mu.Lock()
	m.st = st
	m.mu.Unlock()
	if cell := m.View().Cell(); cell.ID != 0 {
		m.happened([]state.Event{state.CellFormed{Cell: cell.ID, ShardLength: cell.ShardLength}})
	}
	return nil
}

// View gives the state as it is now; it never changes.
func (m *Machine) View() *state.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.st.View()
}
