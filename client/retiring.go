package client

import (
	"context"

	"strake/client/internal/extent"
	"strake/internal/layout"
	"strake/proto/pb"
)

const (
	// retirePages bounds the rounds of page loads that looking for segments
	// without live blocks takes; those not found wait for the next root.
	retirePages = 64
	// retireStep is how many segments are looked at under the mutex at once.
	retireStep = 4096
)

// sealedData lists the data segments that were replayed and are sealed: one whose
// stripes all have newer copies elsewhere is in no map.
func sealedData(segments []*pb.Segment) (ids []layout.SegmentID) {
	for _, s := range segments {
		if s.Seal != nil && !s.Map {
			ids = append(ids, layout.SegmentID(s.Id))
		}
	}
	return ids
}

// freeze begins a checkpoint. In the same moment it looks which of the segments
// that wait to be retired are empty.
func (m *mapper) freeze(ctx context.Context) (*extent.Checkpoint, error) {
	if !m.listed {
		if err := m.listEmpty(ctx); err != nil {
			return nil, err
		}
	}
	for round := 0; ; round++ {
		m.v.mu.Lock()
		need := m.retiring.Look(m.v.tree, m.w.core.Appendable)
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

// listEmpty finds the empty segments that the volume had when it was opened.
func (m *mapper) listEmpty(ctx context.Context) error {
	var list []extent.SegmentLive
	var after layout.SegmentID
	for {
		m.v.mu.Lock()
		var need []extent.PageRef
		list, need = m.v.tree.Segments(after, retireStep, list[:0])
		m.retiring.Add(list)
		if n := len(list); n > 0 {
			after = list[n-1].Segment
		}
		m.v.mu.Unlock()
		if len(need) > 0 {
			if err := m.v.loadPages(ctx, need); err != nil {
				return err
			}
		} else if len(list) < retireStep {
			m.listed = true
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
