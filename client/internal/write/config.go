package write

import (
	"time"

	"strake/internal/layout"
)

// Identifiers that the shell draws (WriteID, FlushID) or that a core numbers
// from 1 (SyncID, RequestID, Copy).
type (
	// WriteID names one submitted write; of the shell's choosing, unique.
	WriteID uint64
	// FlushID names one flush; of the shell's choosing, unique.
	FlushID uint64
	// SyncID names one Sync request.
	SyncID uint64
	// RequestID names one Allocate request.
	RequestID uint64
	// Copy numbers the appends of one stripe: 1, then one more with each move.
	Copy uint32
)

// Bounds and defaults. Every one of them is a named bound of a queue or timer.
const (
	DefaultMemoryCap    = 256 << 20             // payload bytes held until flushed
	DefaultInFlight     = 16                    // stripes in flight per open segment
	CutAfter            = time.Millisecond      // pending bytes wait no longer
	SyncAfter           = time.Second           // un-flushed stripes wait no longer
	MinLate             = 20 * time.Millisecond // a participant is never late before
	MaxLate             = 2 * time.Second       // and always after
	GatherLeast         = 256 << 10             // bytes pending that are cut when a place in flight comes free
	EagerMost           = 256 << 10             // bytes of a write that is made durable ahead of its Flush
	MaxOpen             = 4                     // open segments of one volume, the cold one not counted
	coldInFlight        = 2                     // relocations in flight: the log waits for them as for any stripe
	MinSpare            = 2                     // segments allocated ahead
	MaxSpare            = 64                    // and never more, used or not
	MaxSegmentStripes   = 1 << 16               // a segment with so many is full
	MoveEvery           = time.Second           // between two moves by time-out
	moveAgain           = MoveEvery / 4         // longest wait before a move is asked for again
	AvoidFor            = 10 * time.Second      // a failed server gets no new segment
	scanEvery           = 5 * time.Millisecond  // between two looks for late participants
	openAfter           = 20 * time.Millisecond // a segment that limits so long gets a second
	retryFirst          = 10 * time.Millisecond // first wait after a refusal
	retryMost           = 2 * time.Second       // longest wait
	freeMoves           = 3                     // moves without progress before the writer pauses
	overloadedWait      = 2 * time.Millisecond  // before an Overloaded append goes again
	blocksPerUnit       = layout.MaxUnit / layout.BlockSize
	maxDiscardsInStripe = 1024
)

// Config is what a core is made with. Zero limits take their defaults.
type Config struct {
	Cell     layout.CellID
	Volume   layout.VolumeID
	Epoch    layout.Epoch
	LastSeq  layout.Seq      // the cut: the first stripe gets the next one
	Geometry layout.Geometry // wanted; a segment may be narrower or have more parity, never less
	// MemoryCap bounds payload bytes that are pending or not flushed. At half
	// of it the core syncs by itself, at all of it Submit is refused.
	MemoryCap int64
	// InFlight bounds the stripes per open segment that not all participants
	// have answered.
	InFlight int
}

// MaxWrite is the largest payload of one Submit, in bytes: a quarter of the cap.
func (c Config) MaxWrite() int64 { return c.MemoryCap / 4 }

func (c Config) withDefaults() Config {
	if c.MemoryCap <= 0 {
		c.MemoryCap = DefaultMemoryCap
	}
	if c.InFlight <= 0 {
		c.InFlight = DefaultInFlight
	}
	return c
}
