package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

func (c OpenSession) check() error {
	if len(c.Owner) > MaxText {
		return errs.New(errs.InvalidArgument, "open session", "owner of %d bytes, at most %d", len(c.Owner), MaxText)
	}
	return nil
}

func (c OpenSession) apply(t *tables, r *Result) error {
	t.last.Session++
	s := &Session{ID: t.last.Session, Owner: c.Owner, Janitor: c.Janitor}
	t.putSession(s)
	r.Cell, r.Session = t.cell.ID, s.ID
	r.emit(SessionOpened{Session: s.ID, Owner: s.Owner})
	return nil
}

func (c CloseSession) check() error  { return nil }
func (c ExpireSession) check() error { return nil }

func (c CloseSession) apply(t *tables, r *Result) error  { return t.endSession(c.Session, false, r) }
func (c ExpireSession) apply(t *tables, r *Result) error { return t.endSession(c.Session, true, r) }

// endSession ends a session and its leases. The epochs stay: a writer that is
// only cut off from the metadata service may go on until it is fenced, and may
// still seal. Ending a session that has ended is a success.
func (t *tables) endSession(id layout.SessionID, expired bool, r *Result) error {
	if id == 0 || id > t.last.Session {
		return errs.New(errs.NotFound, "end session", "session %d never was", id)
	}
	session, ok := t.sessions.Get(id)
	if !ok {
		r.Repeat = true
		return nil
	}
	var volumes []layout.VolumeID
	t.held.ascend(uint64(id), 0, func(v uint64) bool { volumes = append(volumes, layout.VolumeID(v)); return true })
	for _, volume := range volumes {
		t.letGo(t.volume(volume), r)
	}
	t.dropSession(session, r)
	r.emit(SessionEnded{Session: id, Expired: expired})
	return nil
}

// owner gives a session's text for people.
func (t *tables) owner(id layout.SessionID) string {
	if s, ok := t.sessions.Get(id); ok && s.Owner != "" {
		return s.Owner
	}
	return "a session without a name"
}
