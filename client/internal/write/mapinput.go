package write

import (
	"time"

	"strake/internal/layout"
)

// Granted answers an Allocate.
func (w *MapWriter) Granted(now time.Duration, id RequestID, segments []Segment, err error) {
	w.c.Granted(now, id, segments, err)
	w.step(now)
}

// Appended answers one shard's part of a Cut or Retry.
func (w *MapWriter) Appended(now time.Duration, r Reply, err error) {
	w.c.Appended(now, r, err)
	w.step(now)
}

// Synced answers a SendSync.
func (w *MapWriter) Synced(now time.Duration, id SyncID, err error) {
	w.c.Synced(now, id, err)
	w.step(now)
}

// Sealed answers a SealSegment.
func (w *MapWriter) Sealed(now time.Duration, segment layout.SegmentID, err error) {
	w.c.Sealed(now, segment, err)
	w.step(now)
}

// MoveGranted answers a RequestMove.
func (w *MapWriter) MoveGranted(now time.Duration, server layout.ServerID, granted bool, retryAfter time.Duration) {
	w.c.MoveGranted(now, server, granted, retryAfter)
	w.step(now)
}

// ServerDown tells that a server is down.
func (w *MapWriter) ServerDown(now time.Duration, server layout.ServerID) {
	w.c.ServerDown(now, server)
	w.step(now)
}

// LeaseLost ends the map writer.
func (w *MapWriter) LeaseLost(now time.Duration, err error) { w.c.LeaseLost(now, err) }

// Release seals all map segments at what the last recorded root holds and ends
// in Released. A checkpoint under way is aborted, unless its root is being
// recorded: Release waits for Recorded then.
func (w *MapWriter) Release(now time.Duration) {
	if w.c.err == nil && w.c.unrecorded && w.state != mapRecording {
		w.c.abort(errClosed)
	}
	w.c.releasing = true
	w.step(now)
}

// Tick does what time has made due.
func (w *MapWriter) Tick(now time.Duration) {
	w.c.Tick(now)
	w.step(now)
}

// NextTick is when Tick is next due.
func (w *MapWriter) NextTick() (at time.Duration, ok bool) { return w.c.NextTick() }

// Take appends the actions since the last Take to dst.
func (w *MapWriter) Take(dst []Action) []Action { return w.c.Take(dst) }

// Free hands a Stripe's memory back for reuse, as for a Core.
func (w *MapWriter) Free(s *Stripe) { w.c.Free(s) }

// LastSeq is the last seq that was cut.
func (w *MapWriter) LastSeq() layout.Seq { return w.c.lastSeq }

// Check verifies the invariants.
func (w *MapWriter) Check() error { return w.c.Check() }
