package simclient

import (
	"cmp"
	"maps"
	"slices"

	"strake/client/internal/extent"
	"strake/internal/layout"
)

const (
	retirePages = 64
)

// sealedData lists the data segments that were replayed and are sealed.
func sealedData(segments []*Segment) (ids []layout.SegmentID) {
	for _, s := range segments {
		if s.Seal != nil && !s.Map {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// freeze begins a checkpoint, and looks in the same moment which of the segments that
// wait to be retired are empty.
func (m *mapper) freeze(f *Fiber) (*extent.Checkpoint, error) {
	if !m.listed {
		if err := m.listEmpty(f); err != nil {
			return nil, err
		}
	}
	for round := 0; ; round++ {
		need := m.retiring.Look(m.v.tree, m.w.core.Appendable)
		if len(need) == 0 || round == retirePages {
			return m.v.tree.Freeze()
		}
		if err := m.v.loadPages(f, need); err != nil {
			return nil, err
		}
	}
}

// listEmpty finds the empty segments that the volume had when it was opened.
func (m *mapper) listEmpty(f *Fiber) error {
	list, err := m.v.liveSegments(f)
	m.retiring.Add(list)
	m.listed = err == nil
	return err
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
