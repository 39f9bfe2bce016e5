package sched

import (
	"context"
	"time"

	"strake/internal/layout"
)

// Quantum is the most bytes of one piece of work: a large transfer is cut into
// pieces, between which others get their turn.
const Quantum = 256 << 10

// Tag is what is known of a piece of work before it runs.
type Tag struct {
	Class    layout.Class
	Tenant   layout.TenantID
	Write    bool
	Bytes    int       // to transfer, at most Quantum
	Deadline time.Time // answered Deadline when it is not dispatched before; zero: none
}

// Scheduler orders the work of one device. Safe for concurrent use.
type Scheduler interface {
	// Do waits for its turn, then runs fn on the caller's goroutine. Errors, with
	// fn not run: Deadline when the tag's passed before its turn came, Overloaded
	// when too many wait, Canceled when ctx ended.
	Do(ctx context.Context, tag Tag, fn func()) error
	// Admit waits until the payload of a write may be read from its socket: the
	// place where writers are slowed before they fill memory. Errors are Do's.
	Admit(ctx context.Context, tag Tag) error
	// Load is the number of pieces that run or wait.
	Load() int
}
