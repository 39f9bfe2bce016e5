package extent

import (
	"strake/internal/layout"
)

// Map is one volume's extent map. It is not safe for concurrent use: the shell
// holds one lock around each call (Lookup too: it notes which pages it used).
type Map struct {
	layers  []*layer // newest first: the active one, then the frozen one of a checkpoint
	applied layout.Seq

	// The base: the newest committed root.
	covers        layout.Seq
	root          PageRef // of the root page; zero Blocks: no root yet
	loaded        bool    // the root page was read
	extents, live tree
	segments      sorted[change] // map segments: live page blocks, the root page's own not counted

	cache      *cache
	checkpoint *Checkpoint    // under way, or nil
	vacate     sorted[change] // map segments to move all pages out of
	limits     [2]int         // most bytes of a leaf and of an inner page; tests make them small
	pieces     []run          // scratch of put
	nothing    node           // scratch of empty
}

// New is the map of a volume that was never written.
func New() *Map {
	m := &Map{layers: []*layer{{}}, cache: newCache(), loaded: true, limits: [2]int{leafLimit, innerLimit}}
	m.extents.top.kind, m.live.top.kind = KindExtent, KindLive
	return m
}

// Open is the map that root describes. No page is loaded yet; the first call
// that needs one asks for it. The headers after Covers are to be applied next.
// Errors are of kind Corrupt or Version.
func Open(root Root) (*Map, error) {
	ref, err := decodeRoot(root)
	if err != nil {
		return nil, err
	}
	m := New()
	m.root, m.loaded = ref, false
	m.covers = layout.Seq(ref.First)
	m.applied = m.covers
	return m, nil
}

// Covers is the last seq that the newest committed root holds.
func (m *Map) Covers() layout.Seq { return m.covers }

// Applied is the last seq that the map holds.
func (m *Map) Applied() layout.Seq { return m.applied }

func (m *Map) active() *layer { return m.layers[0] }

// frozen is the layer that a checkpoint is made of, or nil.
func (m *Map) frozen() *layer {
	if len(m.layers) > 1 {
		return m.layers[1]
	}
	return nil
}

// Install takes a page that was asked for. The error is Corrupt (or Version)
// when it isn't the page that ref names; other shards may have it then.
func (m *Map) Install(ref PageRef, b []byte) error {
	if ref.Kind == KindRoot {
		return m.installRoot(ref, b)
	}
	n, err := decodePage(ref, b)
	if err != nil {
		return err
	}
	m.cache.put(ref, n)
	return nil
}

func (m *Map) installRoot(ref PageRef, b []byte) error {
	if m.loaded || ref != m.root {
		return nil // asked for twice, or of a root that is no longer ours
	}
	p, err := decodeRootPage(ref, b)
	if err != nil {
		return err
	}
	m.extents.top, m.live.top, m.loaded = p.extents, p.live, true
	for _, r := range p.segments {
		add(&m.segments, r[colID], int64(r[colLive]))
	}
	add(&m.segments, uint64(ref.Segment), 0)
	return nil
}

// Evict drops pages, the longest unused first, until MemoryBytes is at most
// limit or none is left. Call it after a call went through, not between Install
// and the repeat, or the repeat may miss again.
func (m *Map) Evict(limit int64) (freed int64) {
	over := m.MemoryBytes() - limit
	for freed < over {
		p := m.cache.oldest()
		if p == nil {
			break
		}
		freed += p.bytes()
		m.cache.drop(p.ref)
	}
	return freed
}

// MemoryBytes is what the map holds in memory: pages and recent changes.
func (m *Map) MemoryBytes() int64 {
	n := m.cache.bytes + int64(len(m.extents.top.bits)+len(m.live.top.bits))
	for _, l := range m.layers {
		n += l.memoryBytes()
	}
	return n
}

func (l *layer) memoryBytes() int64 {
	return int64(len(l.runs.chunks))*chunkLen*runBytes +
		int64(len(l.delta.chunks))*chunkLen*changeBytes
}

// Dirty measures what a checkpoint would take over.
type Dirty struct {
	Headers     int64
	HeaderBytes int64
	Runs        int   // entries of the layer of recent changes
	MemoryBytes int64 // what they take
}

// Dirty is what was applied since the newest Freeze.
func (m *Map) Dirty() Dirty {
	l := m.active()
	return Dirty{l.headers, l.bytes, l.runs.n, l.memoryBytes()}
}

// A checkpoint is due at DueHeaders headers or DueBytes of headers.
const (
	DueHeaders = 1 << 20
	DueBytes   = 64 << 20
)

// Due tells whether a replay of these headers is as much as an open should take.
func (d Dirty) Due() bool { return d.Headers >= DueHeaders || d.HeaderBytes >= DueBytes }
