package state

import (
	"hash/fnv"

	"strake/internal/errs"
	"strake/internal/layout"
)

// remembered is a command that was carried out, for its repeats. Only commands
// whose repeat the state itself does not recognise are remembered, the newest
// MaxRecent of them; refusals are not: a repeat of a refused command is tried
// again. Seals, roots, cuts and allocations need no memory, because what they
// made carries them.
type remembered struct {
	ID      CommandID        `cbor:"1,keyasint"`
	Index   uint64           `cbor:"2,keyasint"`
	Print   uint64           `cbor:"3,keyasint"` // of the type and the client's part
	Session layout.SessionID `cbor:"4,keyasint,omitempty"`
	Volume  layout.VolumeID  `cbor:"5,keyasint,omitempty"`
	Epoch   layout.Epoch     `cbor:"6,keyasint,omitempty"`
}

// memorable tells whether repeats of the command must be looked up.
func memorable(c Command) bool {
	switch c.Type() {
	case TypeOpenSession, TypeCreateVolume, TypeResizeVolume, TypeRemoveVolume, TypeUndeleteVolume, TypeAcquireLease,
		TypeSetClass, TypeRemoveClass, TypeRenewReservation,
		TypeCreateSnapshots, TypeRemoveSnapshot, TypeCloneVolume, TypeRollbackVolume:
		return true
	}
	return false
}

// print is a fingerprint of what the client asked for.
func print(c Command) uint64 {
	h := fnv.New64a()
	h.Write(Encode(c.request()))
	return h.Sum64()
}

// repeated gives the first result of an equal command, or the conflict with an
// unequal one. ok is false when the command is new.
func (t *tables) repeated(c Command) (r Result, ok bool) {
	was, found := t.recent.Get(c.CommandID())
	if !found || !memorable(c) {
		return Result{}, false
	}
	if was.Print != print(c) {
		return refused(errs.New(errs.Conflict, "repeat command", "command id %d was used at log index %d by another command", was.ID, was.Index).
			WithHint("draw a new command id for each new command")), true
	}
	r = Result{Repeat: true, Cell: t.cell.ID, Session: was.Session, Volume: was.Volume, Epoch: was.Epoch}
	if c.Type() == TypeAcquireLease {
		return t.repeatedLease(r), true
	}
	return r, true
}

// remember keeps a command for its repeats and forgets the oldest past the bound.
func (t *tables) remember(c Command, r *Result) {
	if !memorable(c) {
		return
	}
	t.putRemembered(&remembered{ID: c.CommandID(), Index: t.applied, Print: print(c),
		Session: r.Session, Volume: r.Volume, Epoch: r.Epoch})
	for t.recentOrder.Len() > MaxRecent {
		_, id, _ := t.recentOrder.PopMin()
		t.recent.Delete(id)
	}
}

func (t *tables) putRemembered(m *remembered) {
	t.recent.Set(m.ID, m)
	t.recentOrder.Set(m.Index, m.ID)
}
