package replica

import (
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// Machine is the state machine behind the log. Apply, Snapshot and Restore are
// called by one goroutine at a time; what Snapshot returned is written by
// another one while Apply goes on.
type Machine interface {
	// Apply carries out the command at an index of the log. The result goes to
	// the proposer. An error says that this program can't apply the command (it
	// is of a newer version, or damaged): the process ends, for to go on without
	// it would be another state. A refusal is a result, not an error.
	Apply(index uint64, command []byte) (result any, err error)
	// Snapshot gives the state as it is now; it must be quick.
	Snapshot() (io.WriterTo, error)
	// Restore replaces the state. An error of kind Version says that a newer program
	// wrote what it reads, and ends the process too; others end a start, and are the
	// leader's to deal with later.
	Restore(r io.Reader) error
}

// fsm is a Machine in raft's terms.
type fsm struct {
	machine  Machine
	fail     func(error)
	running  atomic.Bool   // the start is over
	halted   atomic.Bool   // an entry could not be applied: nothing after it may be
	restored atomic.Uint64 // snapshots taken over since the start
	refusal  atomic.Value  // why Restore refused last: an error in a refusal; raft does not pass it on
}

type refusal struct{ err error }

// refused gives the error of the last Restore; nil when it went well.
func (f *fsm) refused() error {
	r, _ := f.refusal.Load().(refusal)
	return r.err
}

var _ raft.FSM = (*fsm)(nil)

// Apply implements raft.FSM. raft's goroutine goes on after a failure, to answer those
// who wait; they look at the failure first.
func (f *fsm) Apply(entry *raft.Log) any {
	if f.halted.Load() {
		return nil
	}
	result, err := f.machine.Apply(entry.Index, entry.Data)
	if err != nil {
		f.halted.Store(true)
		f.fail(unreadable(err, errs.KindOf(err), "go on from the log"))
	}
	return result
}

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.halted.Load() { // raft would take it for all entries that it handed over
		return nil, errs.New(errs.Unavailable, "make a snapshot", "an entry of the log could not be applied; this server ends")
	}
	s, err := f.machine.Snapshot()
	if err != nil {
		return nil, err
	}
	return fsmSnapshot{s}, nil
}

// Restore implements raft.FSM.
func (f *fsm) Restore(body io.ReadCloser) error {
	defer body.Close()
	f.restored.Add(1)
	err := f.machine.Restore(body)
	f.refusal.Store(refusal{err})
	if f.running.Load() && errs.KindOf(err) == errs.Version {
		f.fail(unreadable(err, errs.Version, "take the leader's snapshot over"))
	}
	return err
}

type fsmSnapshot struct{ state io.WriterTo }

// Persist implements raft.FSMSnapshot.
func (s fsmSnapshot) Persist(to raft.SnapshotSink) error {
	if _, err := s.state.WriteTo(to); err != nil {
		to.Cancel()
		return err
	}
	return to.Close()
}

// Release implements raft.FSMSnapshot.
func (s fsmSnapshot) Release() {}
