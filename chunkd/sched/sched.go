package sched

import (
	"context"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
)

// Quantum is the most bytes of one piece of work: a large transfer is cut into
// pieces, between which others get their turn.
const Quantum = mclock.MaxQuantum

// Tag is what is known of a piece of work before it runs.
type Tag struct {
	Class    layout.Class
	Tenant   layout.TenantID
	Write    bool
	Part     bool      // of an operation that an earlier piece stands for
	Service  bool      // what a client asks for on its own account, such as headers: it has its class's place, and does not bring its latency target into force
	Bytes    int       // to transfer; a read at most Quantum, a write the longest unit
	Deadline time.Time // answered Deadline when it can't be done before; zero: none
}

// Scheduler orders the work of one device. Safe for concurrent use.
type Scheduler interface {
	// Do waits for its turn, then runs fn on the caller's goroutine. Errors, with
	// fn not run: Deadline when the tag's passed or would pass before the work is
	// done, Overloaded when too many wait, Canceled when ctx ended.
	Do(ctx context.Context, tag Tag, fn func()) error
	// TryAdmit admits a write when it need not wait, see Admit.
	TryAdmit(tag Tag) bool
	// Admit waits until the payload of a write may be read from its socket: the
	// place where writers are slowed before they fill memory. Errors are Do's.
	// Whoever was admitted calls Release with the same tag, once, when the payload
	// is in memory no longer.
	Admit(ctx context.Context, tag Tag) error
	Release(tag Tag)
	// Free tells whether Do would probably run such work at once.
	Free(tag Tag) bool
	// Quantum is how many bytes a piece of work should have now, at most Quantum.
	Quantum(write bool) int
	// Load is the number of pieces that run or wait.
	Load() int
	// Stats gives the figures so far.
	Stats() mclock.Stats
}
