package client

import (
	"context"
	"maps"
	"slices"

	"strake/client/internal/extent"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// maxRetired bounds the segments of one list that a root retires; the next one
	// takes the rest.
	maxRetired = 1024
	// retirePages bounds the rounds of page loads that looking for segments
	// without live blocks takes; those not found wait for the next root.
	retirePages = 64
	// retireStep is how many segments are looked at under the mutex at once.
	retireStep = 4096
)

// retiring remembers data segments that hold no live block and that the metadata
// service has not retired yet: most were not sealed when it was asked. Guarded
// by the volume's mutex; listed belongs to who makes a checkpoint.
type retiring struct {
	waiting map[layout.SegmentID]bool
	asked   []layout.SegmentID // with the root under way
	empty   []layout.SegmentID // of those waiting: without a live block when the map was frozen
	listed  bool               // what the volume had when it was opened is in waiting
}

// newRetiring begins with the sealed segments that were replayed: one whose
// stripes all have newer copies elsewhere is in no map.
func newRetiring(segments []*pb.Segment) retiring {
	r := retiring{waiting: map[layout.SegmentID]bool{}}
	for _, s := range segments {
		if s.Seal != nil && !s.Map {
			r.waiting[layout.SegmentID(s.Id)] = true
		}
	}
	return r
}

// wish gives the segments that a root retires: those it found empty itself, and
// those of earlier ones.
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

// freeze begins a checkpoint. In the same moment it looks which of the segments
// that wait are empty, and take no more stripes: one that was on its way already
// may move into a segment that does, so that the root covers it and names it.
func (m *mapper) freeze(ctx context.Context) (*extent.Checkpoint, error) {
	r := &m.retiring
	if !r.listed {
		if err := m.listEmpty(ctx); err != nil {
			return nil, err
		}
	}
	for round := 0; ; round++ {
		m.v.mu.Lock()
		need := m.findEmpty()
		if len(need) == 0 || round == retirePages {
			c, err := m.v.tree.Freeze()
			m.v.mu.Unlock()
			return c, err
		}
		m.v.mu.Unlock()
		if err := m.v.loadPages(ctx, need); err != nil {
			return nil, err
		}
	}
}

// findEmpty fills in empty, and gives the pages that are missing for it. Called
// with v.mu held.
func (m *mapper) findEmpty() (need []extent.PageRef) {
	r := &m.retiring
	r.empty = r.empty[:0]
	for _, id := range slices.Sorted(maps.Keys(r.waiting)) {
		n, missing := m.v.tree.Live(id)
		switch {
		case missing != nil:
			if len(need) == 0 || need[len(need)-1] != missing[0] {
				need = append(need, missing...)
			}
		case m.w.core.Appendable(id): // the next root looks again
		case n > 0:
			delete(r.waiting, id) // the checkpoint that finds it empty tells
		case len(r.empty) < maxRetired:
			r.empty = append(r.empty, id)
		}
	}
	return need
}

// listEmpty finds the empty segments that the volume had when it was opened.
func (m *mapper) listEmpty(ctx context.Context) error {
	var list []extent.SegmentLive
	var after layout.SegmentID
	for {
		m.v.mu.Lock()
		var need []extent.PageRef
		list, need = m.v.tree.Segments(after, retireStep, list[:0])
		for _, s := range list {
			after = s.Segment
			if s.Blocks == 0 {
				m.retiring.waiting[s.Segment] = true
			}
		}
		m.v.mu.Unlock()
		if len(need) > 0 {
			if err := m.v.loadPages(ctx, need); err != nil {
				return err
			}
		} else if len(list) < retireStep {
			m.retiring.listed = true
			return nil
		}
	}
}

func ids(list []layout.SegmentID) []uint64 {
	out := make([]uint64, len(list))
	for i, s := range list {
		out[i] = uint64(s)
	}
	return out
}

func segmentIDs(list []uint64) []layout.SegmentID {
	out := make([]layout.SegmentID, len(list))
	for i, s := range list {
		out[i] = layout.SegmentID(s)
	}
	return out
}
