package write

import (
	"time"

	"strake/internal/layout"
)

// MapWriter writes a volume's map checkpoints: pages in stripes with the MapPage
// flag, in map segments, under a seq space of their own (Config.LastSeq is its
// last seq, 0 in a new epoch). One checkpoint at a time: Begin, Place as often as needed,
// Finish, then Checkpointed and Recorded. A participant that fails aborts the
// checkpoint: the shell gets Aborted and begins again.
type MapWriter struct{ cfg Config }

// NewMap makes a map writer.
func NewMap(cfg Config) *MapWriter { return &MapWriter{cfg: cfg.withDefaults()} }

// Begin starts a map checkpoint. Pages are numbered from 0 in the order of Place.
func (w *MapWriter) Begin(now time.Duration) error { return nil }

// Place lays out the next pages (blocks of each, 1 to 256) and emits a Cut for
// each stripe, at once or when a segment is granted. The stripe's Pieces name
// the pages (Write is the page's number) and where each lies: header, first
// payload block At. No page spans two units. The shell takes all Cuts of the
// call before it encodes, so that parents can name their children's places;
// children come before parents, in this call or an earlier one.
func (w *MapWriter) Place(now time.Duration, pages []layout.BlockCount) error { return nil }

// Finish ends the placing: when every page is flushed, Checkpointed comes.
func (w *MapWriter) Finish(now time.Duration) {}

// Recorded answers Checkpointed: RecordRoot is done (its outcome must be known:
// the shell repeats the command until it is), or failed for good.
func (w *MapWriter) Recorded(now time.Duration, err error) {}

// Granted answers an Allocate.
func (w *MapWriter) Granted(now time.Duration, id RequestID, segments []Segment, err error) {}

// Appended answers one shard's part of a Cut or Retry.
func (w *MapWriter) Appended(now time.Duration, r Reply, err error) {}

// Synced answers a SendSync.
func (w *MapWriter) Synced(now time.Duration, id SyncID, err error) {}

// Sealed answers a SealSegment.
func (w *MapWriter) Sealed(now time.Duration, segment layout.SegmentID, err error) {}

// MoveGranted answers a RequestMove.
func (w *MapWriter) MoveGranted(now time.Duration, server layout.ServerID, granted bool, retryAfter time.Duration) {
}

// ServerDown tells that a server is down.
func (w *MapWriter) ServerDown(now time.Duration, server layout.ServerID) {}

// LeaseLost ends the map writer.
func (w *MapWriter) LeaseLost(now time.Duration, err error) {}

// Release seals all map segments at what the last recorded root holds and ends
// in Released. A checkpoint under way is aborted.
func (w *MapWriter) Release(now time.Duration) {}

// Tick does what time has made due.
func (w *MapWriter) Tick(now time.Duration) {}

// NextTick is when Tick is next due.
func (w *MapWriter) NextTick() (at time.Duration, ok bool) { return 0, false }

// Take appends the actions since the last Take to dst.
func (w *MapWriter) Take(dst []Action) []Action { return dst }

// Check verifies the invariants.
func (w *MapWriter) Check() error { return nil }
