package extent

import (
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Map is one volume's extent map. It is not safe for concurrent use: the shell
// holds one lock around each call (Lookup too: it notes which pages it used).
type Map struct{}

// New is the map of a volume that was never written.
func New() *Map { return &Map{} }

// Open is the map that root describes. No page is loaded yet; the first call
// that needs one asks for it. The headers after Covers are to be applied next.
func Open(root Root) (*Map, error) { return nil, nil }

// Covers is the last seq that the newest committed root holds.
func (m *Map) Covers() layout.Seq { return 0 }

// Applied is the last seq that the map holds.
func (m *Map) Applied() layout.Seq { return 0 }

// Apply maps the header's ranges. Headers come in seq order without gaps; one
// at or below Applied is already in the map and is passed over. No page is ever
// needed, so a write never waits for the map. An error is a bug of the caller.
func (m *Map) Apply(h *stripe.Header) error { return nil }

// Moved says that a stripe that is not flushed was appended again elsewhere:
// blocks that still lie in the old copy lie in the new one from now on.
func (m *Map) Moved(old, new *stripe.Header) error { return nil }

// Lookup appends the extents of r to dst, in block order and without gaps:
// holes are Zero extents. When pages are missing it returns them, and the
// extents mean nothing: load them, Install, call again.
func (m *Map) Lookup(r layout.Range, dst []Extent) ([]Extent, []PageRef) { return dst, nil }

// Current appends the parts of e that still lie where e says. The cleaner asks
// under the map lock, right before a relocation stripe takes its seq.
func (m *Map) Current(e Extent, dst []Extent) ([]Extent, []PageRef) { return dst, nil }

// Install takes a page that was asked for. The error is Corrupt when it isn't
// the page that ref names; then other shards may have it.
func (m *Map) Install(ref PageRef, page []byte) error { return nil }

// Evict drops pages, the longest unused first, until MemoryBytes is at most
// limit or none is left. Call it after a call went through, not between Install
// and the repeat, or the repeat may miss again.
func (m *Map) Evict(limit int64) (freed int64) { return 0 }

// MemoryBytes is what the map holds in memory: pages and recent changes.
func (m *Map) MemoryBytes() int64 { return 0 }

// Dirty is what was applied since the newest Freeze.
func (m *Map) Dirty() Dirty { return Dirty{} }

// Dirty measures what a checkpoint would take over.
type Dirty struct {
	Headers     int64
	HeaderBytes int64
	Runs        int   // entries of the layer of recent changes
	MemoryBytes int64 // what they hold in memory
}

// Due tells whether replay of that many headers is more than an open should take.
func (d Dirty) Due() bool { return d.Headers >= DueHeaders || d.HeaderBytes >= DueBytes }

const (
	DueHeaders = 1 << 20
	DueBytes   = 64 << 20
)
