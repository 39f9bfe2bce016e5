package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

const (
	// blockedStale is how old a writer's word may be.
	blockedStale = 10 * time.Second
	// maxBlocked bounds the writers of which it is kept.
	maxBlocked = 1 << 14
	// maxBlockedText bounds a writer's reason, in bytes.
	maxBlockedText = 1024
)

// blockedWriters is what writers said lately of acknowledgements that wait. It is
// soft: a new leader hears of it within a second. Safe for concurrent use.
type blockedWriters struct {
	mu sync.Mutex
	by map[layout.VolumeID]blockedWriter // guarded by mu
}

type blockedWriter struct {
	at     time.Time
	server serverID // 0: a segment
	wait   time.Duration
	reason string
}

func newBlockedWriters() *blockedWriters {
	return &blockedWriters{by: map[layout.VolumeID]blockedWriter{}}
}

// note takes a writer's word; a wait of 0 says that nothing waits any more.
func (b *blockedWriters) note(id layout.VolumeID, w blockedWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.by) >= maxBlocked {
		for old, was := range b.by {
			if w.at.Sub(was.at) > blockedStale {
				delete(b.by, old)
			}
		}
	}
	switch {
	case w.wait == 0:
		delete(b.by, id)
	case len(b.by) < maxBlocked:
		b.by[id] = w
	}
}

// of tells what a volume's writer waits for, as it said lately.
func (b *blockedWriters) of(id layout.VolumeID, now time.Time) (blockedWriter, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, ok := b.by[id]
	return w, ok && now.Sub(w.at) < blockedStale
}

// text says for how long, by whom and why.
func (w *blockedWriter) text(view *state.View) string {
	whom := "a segment to write to"
	if srv, ok := view.Server(w.server); ok {
		whom = fmt.Sprintf("chunk server %d at %s", srv.ID, srv.DataAddress)
	}
	return fmt.Sprintf("for %v by %s: %s", w.wait.Round(100*time.Millisecond), whom, w.reason)
}

// byServer gives the longest wait for each server that writers wait for now; server 0
// stands for a segment to write to.
func (b *blockedWriters) byServer(now time.Time) map[serverID]time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	longest := map[serverID]time.Duration{}
	for _, w := range b.by {
		if now.Sub(w.at) < blockedStale {
			longest[w.server] = max(longest[w.server], w.wait)
		}
	}
	return longest
}

// ReportBlocked implements pb.MetaServer.
func (s *Server) ReportBlocked(_ context.Context, r *pb.ReportBlockedRequest) (*pb.ReportBlockedReply, error) {
	v, err := s.machine.View().Resolve(state.VolumeRef{ID: layout.VolumeID(r.GetVolume())})
	if err != nil {
		return nil, err
	}
	if err := holds(&v, sessionID(r.GetSession()), layout.Epoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	s.blocked.note(v.ID, blockedWriter{at: time.Now(), server: serverID(r.GetServer()),
		wait: time.Duration(r.GetMs()) * time.Millisecond, reason: r.GetReason()[:min(len(r.GetReason()), maxBlockedText)]})
	return &pb.ReportBlockedReply{}, nil
}
