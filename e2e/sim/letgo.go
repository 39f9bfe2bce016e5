package sim

import (
	"strake/client/simclient"
	"strake/internal/errs"
	"strake/meta/state"
)

// letGo takes away all that holds anything back beside the heads: every snapshot, and
// what branches stand on. Then nothing may be stored but what the heads need.
func (s *Sim) letGo() {
	s.asChecker(func(p *clientProcess, f *simclient.Fiber) {
		for _, name := range lines {
			for _, n := range s.standing(name) {
				if err := p.c.RemoveSnapshot(f, n.of.name, n.name); err != nil {
					s.fail("snapshot %d of volume %d can't be removed in a healed cell: %v", n.id, n.of.id, err)
					return
				}
			}
		}
		for _, h := range s.heads() {
			if err := p.c.FlattenVolume(f, h.name); err != nil && errs.KindOf(err) != errs.NotFound {
				s.fail("volume %d can't be flattened in a healed cell: %v", h.id, err)
				return
			}
		}
		s.cleanAll(p, f) // which flattens
	})
	if s.err == nil {
		s.settle()
	}
	if s.err == nil { // what branches stood on is gone only now
		s.asChecker(s.cleanAll)
	}
	if s.err == nil {
		s.settle()
	}
	if s.err == nil {
		s.checkAllIsLive()
	}
}

// checkAllIsLive checks that no volume is left but the heads, that these store nothing
// that is retired, and hardly more than their content.
func (s *Sim) checkAllIsLive() {
	v := s.meta.view()
	if purged, _ := v.Purged(0, 0); len(purged) > 0 {
		s.fail("garbage: volume %d is still there though nothing stands on it", purged[0].ID)
	}
	for _, h := range s.heads() {
		if vol, _ := v.Volume(h.id); vol.Origin != 0 {
			s.fail("garbage: volume %d still stands on snapshot %d", h.id, vol.Origin)
		}
		page, _ := v.SegmentsOfVolume(h.id, 0, 0)
		for i := range page {
			if g := &page[i]; g.Retired != 0 && g.State != state.Dropped {
				s.fail("garbage: segment %d of volume %d is retired and still there (map %v, %v)", g.ID, h.id, g.Map, g.State)
			}
		}
		s.checkGarbage(h)
	}
	s.rare("nothing left but what is live")
}
