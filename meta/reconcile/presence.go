package reconcile

import (
	"time"

	"strake/internal/layout"
)

// servers judges who is there. A server that was marked down without having
// restarted comes back after steady heartbeats; one that restarts comes back
// by registering.
func (pl *plan) servers() {
	for _, s := range pl.view.Servers() {
		h, heard := pl.p.heard[s.ID]
		silent := pl.now - h.last
		if !heard { // not in this term yet
			silent = pl.now - first(pl.p.firstSeen, s.ID, pl.now)
		}
		switch {
		case s.Up && silent > pl.p.limits.DownAfter:
			pl.add(MarkServer{Server: s.ID, Registered: s.Registered, Silent: silent})
		case !s.Up && heard && silent <= pl.p.limits.DownAfter && pl.now-h.steady >= pl.p.limits.UpAfter:
			pl.add(MarkServer{Server: s.ID, Up: true, Registered: s.Registered})
		}
	}
}

// sessions judges who was silent too long. Notes of sessions that are over go.
func (pl *plan) sessions() {
	open := make(map[layout.SessionID]bool)
	for _, s := range pl.view.Sessions() {
		open[s.ID] = true
		if silent := pl.now - first(pl.p.kept, s.ID, pl.now); silent > pl.p.limits.SessionTTL {
			pl.add(ExpireSession{Session: s.ID, Silent: silent})
		}
	}
	for id := range pl.p.kept { // which one goes first does not matter
		if !open[id] {
			delete(pl.p.kept, id)
		}
	}
}

// first gives the time noted for id, and notes now where there is none.
func first[K comparable](times map[K]time.Duration, id K, now time.Duration) time.Duration {
	at, ok := times[id]
	if !ok {
		at = now
		times[id] = at
	}
	return at
}

// sightings are since when each of a listing is there. What a whole pass of
// the listing did not meet is forgotten.
type sightings[K ~uint64] struct {
	since, met map[K]time.Duration
}

func newSightings[K ~uint64]() sightings[K] {
	return sightings[K]{map[K]time.Duration{}, map[K]time.Duration{}}
}

// see notes that id is there and tells for how long it has been.
func (s *sightings[K]) see(id K, now time.Duration) time.Duration {
	at := first(s.since, id, now)
	s.met[id] = at
	return now - at
}

// passed ends a pass of the listing.
func (s *sightings[K]) passed() { s.since, s.met = s.met, map[K]time.Duration{} }
