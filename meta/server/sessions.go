package server

import (
	"context"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/meta/state"
	"strake/proto/pb"
)

// maxEvents bounds the events that wait for one session. Equal ones are merged,
// so a session that reaches it has not called for long; it ends.
const maxEvents = 4096

// sessions is the leader's soft state of sessions: what each must be told. It
// begins anew with each term. How long each was silent the planner judges.
type sessions struct {
	ttl  time.Duration
	kept func(sessionID) // told of each renewal

	mu      sync.Mutex
	leading bool                   // guarded by mu
	nextID  uint64                 // guarded by mu: of events; the term in the high half
	byID    map[sessionID]*session // guarded by mu; empty while not leading
}

// session is guarded by sessions.mu.
type session struct {
	queue    []*pb.SessionEvent
	changed  chan struct{} // closed and replaced when the queue grows or the session ends
	overflow bool          // it did not fetch its events, and is not renewed any more
}

func newSessions(ttl time.Duration, kept func(sessionID)) *sessions {
	return &sessions{ttl: ttl, kept: kept, byID: map[sessionID]*session{}}
}

// begin starts a term with the sessions of the state.
func (t *sessions) begin(term uint64, all []state.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leading, t.nextID = true, term<<32
	t.byID = map[sessionID]*session{}
	for _, s := range all {
		t.byID[s.ID] = newSession()
	}
}

func newSession() *session { return &session{changed: make(chan struct{})} }

// end ends a term: callers that wait are sent to the next leader.
func (t *sessions) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leading = false
	for _, s := range t.byID {
		close(s.changed)
	}
	t.byID = map[sessionID]*session{}
}

// opened and ended follow the state.
func (t *sessions) opened(id sessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.byID[id]; t.leading && !ok {
		t.byID[id] = newSession()
	}
}

func (t *sessions) ended(id sessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.byID[id]; ok {
		close(s.changed)
		delete(t.byID, id)
	}
}

// tell queues an event for a session, unless an equal one waits there.
func (t *sessions) tell(id sessionID, e *pb.SessionEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.byID[id]
	if !ok {
		return
	}
	for _, q := range s.queue {
		if q.Kind == e.Kind && q.Server == e.Server && q.Volume == e.Volume && q.Barrier == e.Barrier {
			return
		}
	}
	if len(s.queue) == maxEvents {
		s.overflow = true
		return
	}
	t.nextID++
	e.Id = t.nextID
	s.queue = append(s.queue, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// keep renews a session and waits up to wait for events after seen.
func (t *sessions) keep(ctx context.Context, id sessionID, seen uint64, wait time.Duration) ([]*pb.SessionEvent, error) {
	timer := time.NewTimer(min(wait, t.ttl/2))
	defer timer.Stop()
	for {
		events, changed, err := t.look(id, seen)
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-changed:
		case <-timer.C:
			events, _, err := t.look(id, seen)
			return events, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look renews a session, drops what it has seen, and gives what waits.
func (t *sessions) look(id sessionID, seen uint64) ([]*pb.SessionEvent, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.leading {
		return nil, nil, errs.New(errs.NotLeader, "keep the session", "this server no longer leads")
	}
	s, ok := t.byID[id]
	if !ok || s.overflow {
		return nil, nil, sessionEnded(id)
	}
	t.kept(id)
	for len(s.queue) > 0 && s.queue[0].Id <= seen {
		s.queue = s.queue[1:]
	}
	return append([]*pb.SessionEvent(nil), s.queue...), s.changed, nil
}

func sessionEnded(id sessionID) error {
	return errs.New(errs.LeaseLost, "keep the session", "session %d has ended", id).
		WithHint("open a new session and acquire the leases again")
}
