package simclient

import (
	"strake/client/internal/clean"
	"strake/client/internal/extent"
	"strake/internal/layout"
)

const (
	censusStep   = 4096
	settleRounds = 64
	settlePages  = 16
)

// census is what a volume's segments hold.
type census struct {
	list      []clean.Segment    // own, sealed, and needed by no snapshot
	pages     []clean.Pages      // own map segments that are sealed
	inherited []clean.Segment    // of ancestors, with live blocks
	foreign   []layout.SegmentID // map segments of ancestors
	blocked   int64              // bytes in segments that snapshots need
	head      layout.Seq
}

// catalog remembers segments. It belongs to who cleans.
type catalog map[layout.SegmentID]*Segment

// learn asks about segments that are not known to be sealed, and gives those that
// are gone.
func (k catalog) learn(f *Fiber, v *Volume, wanted []layout.SegmentID) (gone []layout.SegmentID, err error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	r, err := metaCall[*Segments](v.c, f, 10*attemptTimeout, attemptTimeout, &GetSegments{IDs: wanted})
	if err != nil {
		return nil, err
	}
	v.c.learn(r.List)
	found := map[layout.SegmentID]bool{}
	for _, s := range r.List {
		found[s.ID], k[s.ID] = true, s
	}
	for _, id := range wanted {
		if !found[id] {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

// take counts a volume's live blocks by segment. Segments that snapshots hold are needed
// whatever is live, unless the snapshots are likely to go.
func (k catalog) take(f *Fiber, v *Volume, held layout.Held) (c census, err error) {
	if err := v.settle(f); err != nil {
		return c, err
	}
	data, err := v.liveSegments(f)
	if err != nil {
		return c, err
	}
	pages, err := v.mapSegments(f)
	if err != nil {
		return c, err
	}
	gone, err := k.learn(f, v, k.unknown(data, pages))
	if err != nil {
		return c, err
	}
	for _, id := range gone {
		delete(k, id)
	}
	v.tree.Forget(gone...)
	c.head = v.tree.Applied()
	for _, s := range data {
		c.add(v, s, k[s.Segment], held)
	}
	for _, s := range pages {
		switch info := k[s.Segment]; {
		case info == nil:
		case info.Volume != v.ID:
			if s.Blocks > 0 {
				c.foreign = append(c.foreign, s.Segment)
			}
		case info.Seal != nil:
			c.pages = append(c.pages, clean.Pages{ID: s.Segment, Live: layout.BlockCount(s.Blocks), Stored: stored(info)})
		}
	}
	return c, nil
}

func (c *census) add(v *Volume, s extent.SegmentLive, info *Segment, held layout.Held) {
	if info == nil { // gone
		return
	}
	one := clean.Segment{ID: s.Segment, Live: layout.BlockCount(s.Blocks), Stored: stored(info)}
	switch {
	case info.Volume != v.ID:
		if s.Blocks > 0 {
			c.inherited = append(c.inherited, one)
		}
		return
	case info.Seal == nil:
		return
	}
	one.Last = info.Seal.Last
	if held.Holds(info.Seal.First) && s.Blocks > 0 {
		c.blocked += one.Stored
		if one.Held = true; !held.Rolls(info.Seal.First) {
			return
		}
	}
	c.list = append(c.list, one)
}

// stored is how many bytes a sealed segment has on all shards.
func stored(s *Segment) (n int64) {
	if s.Seal != nil {
		for _, sh := range s.Seal.Shards {
			n += int64(sh.Length)
		}
	}
	return n
}

// unknown gives the segments that are not known to be sealed, and forgets those
// that no list has any more.
func (k catalog) unknown(lists ...[]extent.SegmentLive) (out []layout.SegmentID) {
	named := map[layout.SegmentID]bool{}
	for _, list := range lists {
		for _, s := range list {
			named[s.Segment] = true
			if k[s.Segment] == nil || k[s.Segment].Seal == nil {
				out = append(out, s.Segment)
			}
		}
	}
	for id := range k {
		if !named[id] {
			delete(k, id)
		}
	}
	return out
}

// settle makes the live counts exact, as far as that goes.
func (v *Volume) settle(f *Fiber) error {
	for range settleRounds {
		need := v.tree.Settle(settlePages)
		if len(need) == 0 {
			return nil
		}
		if err := v.loadPages(f, need); err != nil {
			return err
		}
	}
	return nil
}

// liveSegments lists the data segments of the map.
func (v *Volume) liveSegments(f *Fiber) (list []extent.SegmentLive, err error) {
	for {
		var after layout.SegmentID
		if n := len(list); n > 0 {
			after = list[n-1].Segment
		}
		before := len(list)
		var need []extent.PageRef
		list, need = v.tree.Segments(after, censusStep, list)
		if len(need) > 0 {
			if err := v.loadPages(f, need); err != nil {
				return nil, err
			}
		} else if len(list)-before < censusStep {
			return list, nil
		}
	}
}

// mapSegments lists the map segments of the newest root.
func (v *Volume) mapSegments(f *Fiber) ([]extent.SegmentLive, error) {
	for {
		list, need := v.tree.MapSegments()
		if len(need) == 0 {
			return list, nil
		}
		if err := v.loadPages(f, need); err != nil {
			return nil, err
		}
	}
}

// count tells a root what the map's live blocks are.
func (m *mapper) count(f *Fiber) error {
	data, err := m.v.liveSegments(f)
	if err != nil {
		return err
	}
	pages, err := m.v.mapSegments(f)
	if err != nil {
		return err
	}
	if m.branch && m.foreign == nil {
		known := catalog{}
		if _, err := known.learn(f, m.v, known.unknown(data, pages)); err != nil {
			return err
		}
		m.foreign = map[layout.SegmentID]bool{}
		for id, s := range known {
			m.foreign[id] = s.Volume != m.v.ID
		}
	}
	m.live, m.own, m.rooted = 0, 0, 1 // the new root's own page
	for _, s := range data {
		m.live += s.Blocks
		if !m.foreign[s.Segment] {
			m.own += s.Blocks
		}
	}
	for _, s := range pages {
		if !m.foreign[s.Segment] {
			m.rooted += s.Blocks
		}
	}
	return nil
}
