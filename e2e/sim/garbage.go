package sim

import (
	"strake/client/simclient"
	"strake/internal/layout"
	"strake/meta/state"
)

// Garbage is collected: after a bounded number of rounds a volume's segments store
// hardly more than its content needs. What the content is tells the history, not the
// client's map. What snapshots need is left out of it.

// mostRounds bounds the rounds that a volume without writers takes.
const mostRounds = 6

// cleanAll cleans every volume.
func (s *Sim) cleanAll(p *clientProcess, f *simclient.Fiber) {
	for _, h := range s.heads() {
		v, err := p.c.OpenWriter(f, h.name, true)
		if err != nil {
			s.fail("volume %d can't be opened for cleaning in a healed cell: %v", h.id, err)
			return
		}
		h.opened(v, p)
		r, err := v.Clean(f)
		if err != nil || r.Rounds > mostRounds {
			s.fail("garbage: volume %d: cleaning ended after %d rounds with %d bytes of garbage: %v", h.id, r.Rounds, r.Garbage, err)
		}
		if err := v.Close(f); err != nil {
			s.fail("volume %d can't be closed after cleaning: %v", h.id, err)
		}
		s.checkGarbage(h)
	}
}

// checkGarbage compares what a volume's own segments store with what its content needs.
func (s *Sim) checkGarbage(h *history) {
	v := s.meta.view()
	vol, _ := v.Volume(h.id)
	live := 0
	for b := range h.blocks {
		if h.at(layout.BlockNumber(b), latest, ^layout.Seq(0)) != 0 {
			live++
		}
	}
	stored, row := int64(0), int64(vol.Geometry.Shards())*layout.BlockSize
	rounding := row // of the last rows of stripes
	page, _ := v.SegmentsOfVolume(h.id, 0, 0)
	for i := range page {
		g := &page[i]
		if g.Map || g.Retired != 0 || g.State != state.Sealed && g.State != state.Finalized || g.Seal.First <= v.FrozenSeq(h.id) {
			continue
		}
		rounding += row
		for _, sh := range g.Seal.Shards {
			stored += int64(sh.Length)
		}
	}
	k := s.widest(vol.Geometry)
	needs := int64((live+k-1)/k) * int64(k+int(vol.Geometry.M)) * layout.BlockSize
	s.note("garbage", uint64(h.id), uint64(live), uint64(stored), uint64(needs))
	// Segments that gain less than a twentieth are left as they are.
	if most := needs + needs/20 + stored/20 + leastGarbage + rounding; stored > most {
		s.fail("garbage: volume %d: %d live blocks need %d bytes, its segments store %d, at most %d are fine", h.id, live, needs, stored, most)
	}
}

// widest is how many data shards a segment may have with the servers that are left.
func (s *Sim) widest(g layout.Geometry) int {
	alive := 0
	for _, c := range s.chunks {
		if !c.lost {
			alive++
		}
	}
	return min(int(g.K), alive-int(g.M))
}
