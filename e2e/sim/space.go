package sim

import (
	"slices"

	"strake/chunkd/store"
	"strake/internal/layout"
	"strake/meta/state"
)

// Space comes back: after convergence nothing is left to seal, finalize or delete,
// and each device holds exactly the shards that the state places on it.

// settled tells whether the state has nothing left to do.
func (s *Sim) settled() bool {
	v := s.meta.view()
	unfinalized, _ := v.Unfinalized(0, 1)
	deletable, _ := v.Deletable(0, 1)
	allocated, _ := v.Allocated(0, 1)
	orphans, _ := v.Unrecovered(0, 1)
	freeing, _ := v.Freeing(0, 1)
	return len(unfinalized)+len(deletable)+len(allocated)+len(orphans)+len(freeing) == 0 && s.lingering() == nil && s.lacking() == 0 && s.strays() == 0
}

// lingering gives a volume that was purged and on which nothing stands, and that is
// not gone; nil: none.
func (s *Sim) lingering() *state.Volume {
	page, _ := s.meta.view().Purged(0, 0)
	for i := range page {
		stands := false
		for _, n := range s.frozen {
			stands = stands || n.of.id == page[i].ID && !n.gone
		}
		if !stands {
			return &page[i]
		}
	}
	return nil
}

func (s *Sim) checkSpace() {
	v := s.meta.view()
	for _, c := range s.chunks {
		if c.store == nil || c.lost {
			continue
		}
		placed := map[layout.ShardKey]state.Segment{}
		page, _ := v.SegmentsOnDevice(c.device, 0, 0)
		for _, g := range page {
			for i, p := range g.Placements {
				if p.Device == c.device {
					placed[layout.ShardKey{Segment: g.ID, Shard: layout.ShardIndex(i)}] = g
				}
			}
		}
		s.checkDevice(c, placed)
	}
}

func (s *Sim) checkDevice(c *chunkServer, placed map[layout.ShardKey]state.Segment) {
	var charged uint64
	c.store.Each(func(st store.Stat) bool {
		g, ok := placed[st.Ref.ShardKey]
		if st.State == store.StateFinalized {
			charged += uint64(st.Stored)
		} else {
			charged += uint64(st.Length)
		}
		switch {
		case !ok && s.short(st.Ref.Segment): // it stays until its segment is whole
		case !ok:
			s.fail("space: server %d still has shard %v, which no segment places there", c.id, st.Ref.ShardKey)
		case st.State == store.StateFinalized && uint32(g.Seal.Shards[st.Ref.Shard].Count) != st.Stripes:
			s.fail("frozen: shard %v on server %d has %d stripes, the seal %d", st.Ref.ShardKey, c.id, st.Stripes, g.Seal.Shards[st.Ref.Shard].Count)
		}
		delete(placed, st.Ref.ShardKey)
		return s.err == nil
	})
	if u := c.store.Usage(); u.Reserved != charged {
		s.fail("space: server %d has %d bytes reserved, its shards sum up to %d", c.id, u.Reserved, charged)
	}
	left := make([]layout.ShardKey, 0, len(placed))
	for k, g := range placed {
		if g.Lost.Has(k.Shard) {
			continue // it waits for a server to be made again on
		}
		left = append(left, k)
	}
	slices.SortFunc(left, func(a, b layout.ShardKey) int { return int(int64(a.Segment) - int64(b.Segment)) })
	if len(left) > 0 {
		s.fail("redundancy: shard %v is placed on server %d, which does not have it", left[0], c.id)
	}
	if !s.hurt[c.device] && s.err == nil {
		if err := c.store.Check(); err != nil {
			s.fail("store of server %d: %v", c.id, err)
		}
	}
}
