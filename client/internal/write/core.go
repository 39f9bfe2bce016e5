package write

import (
	"time"

	"strake/internal/layout"
)

// Core is the writer of one volume. Not safe for concurrent use: the shell
// holds a mutex around each call and the Take that follows it.
type Core struct{ cfg Config }

type mark struct{}

// New makes a core that writes under cfg.Epoch after cfg.LastSeq.
func New(cfg Config) *Core { return &Core{cfg: cfg.withDefaults()} }

// Submit takes a write in. An error means that it was not taken: Overloaded at
// the memory cap (wait for Resume), TooLarge past MaxWrite, InvalidArgument,
// Closed after Release, or the error that ended the writer.
func (c *Core) Submit(now time.Duration, w Write) error { return nil }

// Flush asks that all writes submitted so far become flushed.
func (c *Core) Flush(now time.Duration, id FlushID) {}

// Granted answers an Allocate.
func (c *Core) Granted(now time.Duration, id RequestID, segments []Segment, err error) {}

// Appended answers one shard's part of a Cut, Move or Retry, once each.
func (c *Core) Appended(now time.Duration, r Reply, err error) {}

// Synced answers a SendSync.
func (c *Core) Synced(now time.Duration, id SyncID, err error) {}

// Sealed answers a SealSegment.
func (c *Core) Sealed(now time.Duration, segment layout.SegmentID, err error) {}

// MoveGranted answers a RequestMove.
func (c *Core) MoveGranted(now time.Duration, server layout.ServerID, granted bool, retryAfter time.Duration) {
}

// ServerDown tells that the metadata service, or a refused or reset
// connection, says that a server is down.
func (c *Core) ServerDown(now time.Duration, server layout.ServerID) {}

// LeaseLost ends the writer: another one took the volume, or the session is gone.
func (c *Core) LeaseLost(now time.Duration, err error) {}

// Release flushes, seals all and ends in Released. No write is taken any more.
func (c *Core) Release(now time.Duration) {}

// Tick does what time has made due.
func (c *Core) Tick(now time.Duration) {}

// NextTick is when Tick is next due; ok is false when nothing waits for time.
func (c *Core) NextTick() (at time.Duration, ok bool) { return 0, false }

// Take appends the actions since the last Take to dst. Call it after each input.
func (c *Core) Take(dst []Action) []Action { return dst }

// Free hands a Stripe's memory back for reuse: optional, once the shell has
// dealt with the Flushed that covers it and keeps no reference.
func (c *Core) Free(s *Stripe) {}

// Blocked names the server that the oldest acknowledgement waits for, and
// since how long.
func (c *Core) Blocked(now time.Duration) (server layout.ServerID, wait time.Duration, ok bool) {
	return 0, 0, false
}

// Acked is the last acknowledged seq, FlushedSeq the last flushed one, LastSeq
// the last one cut. Frames carry the first two.
func (c *Core) Acked() layout.Seq      { return 0 }
func (c *Core) FlushedSeq() layout.Seq { return 0 }
func (c *Core) LastSeq() layout.Seq    { return 0 }

// Held is the payload in bytes that the shell must keep: pending and not flushed.
func (c *Core) Held() int64 { return 0 }

// Full tells whether Submit would refuse for memory.
func (c *Core) Full() bool { return false }

// P99 is a server's recent 99th percentile of append times; 0 while unknown.
func (c *Core) P99(server layout.ServerID) time.Duration { return 0 }

// Check verifies the invariants in doc.go and names the first broken one.
func (c *Core) Check() error { return nil }
