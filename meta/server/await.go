package server

import (
	"context"
	"time"

	"strake/meta/state"
)

// awaitPoll is how often a call looks again at whether servers were heard.
const awaitPoll = 25 * time.Millisecond

// await runs look with the newest state; while look lacks something and servers
// are still awaited by this leader, it waits and looks again. A leader whose term
// is older than a server's silence awaits nobody.
func (s *Server) await(ctx context.Context, look func(*state.View) (lacks bool)) {
	for {
		view := s.machine.View()
		if !look(view) || !s.awaitsAny(view) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(awaitPoll):
		}
	}
}

func (s *Server) awaitsAny(view *state.View) bool {
	for _, srv := range view.Servers() {
		if srv.Up && s.alive.awaited(srv.ID) {
			return true
		}
	}
	return false
}

// readable waits until of each segment at least k shards are at servers that this
// leader heard, or nobody is awaited any more: addresses from before a restart of
// the whole cell are of no use.
func (s *Server) readable(ctx context.Context, segments func(*state.View) []state.Segment) *state.View {
	var view *state.View
	s.await(ctx, func(v *state.View) bool {
		view = v
		for _, seg := range segments(v) {
			awaited := 0
			for _, p := range seg.Placements {
				if d, _ := v.Device(p.Device); s.alive.awaited(d.Server) {
					awaited++
				}
			}
			if awaited > int(seg.Geometry.M) {
				return true
			}
		}
		return false
	})
	return view
}
