package sim

import (
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// Placement is sane: shards of a segment stand on distinct servers, m is the
// volume's. Redundancy is never lowered by the system itself: a shard of a segment
// that its writer sealed matches the seal, unless its medium was damaged.

func (s *Sim) checkPlaced(v *state.View, id layout.SegmentID) {
	g, _ := v.Segment(id)
	vol, _ := v.Volume(g.Volume)
	if g.Geometry.M != vol.Geometry.M || g.Geometry.K > vol.Geometry.K {
		s.fail("placement: segment %d has geometry %v in a volume of %v", id, g.Geometry, vol.Geometry)
	}
	seen := map[layout.ServerID]bool{}
	for _, p := range g.Placements {
		d, _ := v.Device(p.Device)
		if seen[d.Server] {
			s.fail("placement: segment %d has two shards on server %d", id, d.Server)
		}
		seen[d.Server] = true
	}
}

// finalized checks what a shard made of its seal.
func (s *Sim) finalized(c *chunkServer, key layout.ShardKey, err error) {
	was := s.sealed[key.Segment]
	if errs.KindOf(err) == errs.Corrupt && was != nil && was.live && !was.isMap && !s.hurt[c.device] {
		s.fail("redundancy: shard %v on server %d does not match the seal that its writer made of flushed stripes: %v", key, c.id, err)
	}
	if errs.KindOf(err) == errs.Conflict {
		s.fail("frozen: shard %v on server %d: %v", key, c.id, err)
	}
}
