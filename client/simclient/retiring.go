package simclient

import (
	"cmp"
	"maps"
	"slices"

	"strake/client/internal/extent"
	"strake/internal/layout"
)

const (
	maxRetired  = 1024
	retirePages = 64
)

// retiring remembers data segments that hold no live block and that the metadata
// service has not retired yet.
type retiring struct {
	waiting map[layout.SegmentID]bool
	asked   []layout.SegmentID // with the root under way
	empty   []layout.SegmentID // of those waiting: without a live block when the map was frozen
	listed  bool               // what the volume had when it was opened is in waiting
}

func newRetiring(segments []*Segment) retiring {
	r := retiring{waiting: map[layout.SegmentID]bool{}}
	for _, s := range segments {
		if s.Seal != nil && !s.Map {
			r.waiting[s.ID] = true
		}
	}
	return r
}

// wish gives the segments that a root retires.
func (r *retiring) wish(found []layout.SegmentID) []layout.SegmentID {
	r.asked = append(slices.Clone(found), r.empty...)
	slices.Sort(r.asked)
	r.asked = slices.Compact(r.asked)
	return r.asked[:min(len(r.asked), maxRetired)]
}

// told takes in which of them are retired; the others wait.
func (r *retiring) told(gone []layout.SegmentID) {
	for _, id := range r.asked {
		r.waiting[id] = true
	}
	for _, id := range gone {
		delete(r.waiting, id)
	}
	r.asked = nil
}

// freeze begins a checkpoint, and looks in the same moment which of the segments that
// wait are empty, and take no more stripes.
func (m *mapper) freeze(f *Fiber) (*extent.Checkpoint, error) {
	r := &m.retiring
	if !r.listed {
		if err := m.listEmpty(f); err != nil {
			return nil, err
		}
	}
	for round := 0; ; round++ {
		need := m.findEmpty()
		if len(need) == 0 || round == retirePages {
			return m.v.tree.Freeze()
		}
		if err := m.v.loadPages(f, need); err != nil {
			return nil, err
		}
	}
}

// findEmpty fills in empty, and gives the pages that are missing for it.
func (m *mapper) findEmpty() (need []extent.PageRef) {
	r := &m.retiring
	r.empty = r.empty[:0]
	for _, id := range sortedKeys(r.waiting) {
		n, missing := m.v.tree.Live(id)
		switch {
		case missing != nil:
			if len(need) == 0 || need[len(need)-1] != missing[0] {
				need = append(need, missing...)
			}
		case m.w.core.Appendable(id): // the next root looks again
		case n > 0:
			delete(r.waiting, id)
		case len(r.empty) < maxRetired:
			r.empty = append(r.empty, id)
		}
	}
	return need
}

// listEmpty finds the empty segments that the volume had when it was opened.
func (m *mapper) listEmpty(f *Fiber) error {
	list, err := m.v.liveSegments(f)
	for _, s := range list {
		if s.Blocks == 0 {
			m.retiring.waiting[s.Segment] = true
		}
	}
	m.retiring.listed = err == nil
	return err
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
