package sim

import (
	"fmt"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/frame"
	"strake/proto/pb"
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

// Rebuild never lowers redundancy, and ends.

// replaced checks, when a shard's new place is recorded, that a whole shard is there.
func (s *Sim) replaced(v *state.View, e state.ShardReplaced) {
	s.moved = true
	c := s.onDevice(v, e.New.Device)
	if c == nil || c.store == nil {
		return // it fell since: the end tells whether it has the shard
	}
	st, err := c.store.Stat(frame.ShardRef{ShardKey: e.Shard, Generation: e.New.Generation})
	if err != nil || st.State != store.StateFinalized {
		s.fail("redundancy: shard %v is recorded on server %d at generation %d, where it is not whole: %v, state %v", e.Shard, c.id, e.New.Generation, err, st.State)
	}
}

func (s *Sim) onDevice(v *state.View, id layout.DeviceID) *chunkServer {
	d, _ := v.Device(id)
	return s.servers[d.Server]
}

// mayBeGivenUp checks, when the leader gives a shard up as left over, that by its own
// record the segment is whole without it. What happens on the answer's way is nobody's
// fault.
func (s *Sim) mayBeGivenUp(v *state.View, ref *pb.ShardRef) {
	g, ok := v.Segment(layout.SegmentID(ref.Segment))
	if !ok || !v.Needed(&g) {
		return
	}
	if g.State != state.Finalized || g.Lost != 0 {
		s.fail("redundancy: shard %v of a segment that is %v and misses shards %b is given up", keyOf(ref), g.State, g.Lost)
	}
	for i, p := range g.Placements {
		if d, _ := v.Device(p.Device); d.State == state.DeviceDead || d.State == state.DeviceDown {
			s.fail("redundancy: shard %v is given up while shard %d of its segment is on device %d, which is %v", keyOf(ref), i, d.ID, d.State)
		}
	}
}

// mayGo checks a shard that is deleted because its segment has no need of it: no
// segment places it there, and all k+m shards are where they are placed.
func (s *Sim) mayGo(c *chunkServer, ref frame.ShardRef) {
	v := s.meta.newest()
	g, ok := v.Segment(ref.Segment)
	if !ok || !v.Needed(&g) {
		return
	}
	for i, p := range g.Placements {
		at := layout.ShardKey{Segment: g.ID, Shard: layout.ShardIndex(i)}
		if p.Device == c.device && p.Generation == ref.Generation && at == ref.ShardKey {
			s.fail("redundancy: server %d deletes shard %v of generation %d, which is placed there", c.id, ref.ShardKey, ref.Generation)
		}
		holder := s.onDevice(v, p.Device)
		if holder == nil || holder.store == nil {
			continue // nothing can be said of it now
		}
		if st, err := holder.store.Stat(frame.ShardRef{ShardKey: at, Generation: p.Generation}); err != nil || st.State != store.StateFinalized && g.State == state.Finalized {
			s.fail("redundancy: server %d deletes a leftover of shard %v (generation %d) while shard %v is not whole on server %d: %v", c.id, ref.ShardKey, ref.Generation, at, holder.id, err)
		}
	}
}

// mayMakeWay checks a shard that was deleted to make way for a newer generation of
// itself: no segment counts on it there.
func (s *Sim) mayMakeWay(c *chunkServer, ref frame.ShardRef) {
	g, ok := s.meta.newest().Segment(ref.Segment)
	if ok && !g.Lost.Has(ref.Shard) && g.Placements[ref.Shard] == (state.Placement{Device: c.device, Generation: ref.Generation}) {
		s.fail("redundancy: server %d deletes shard %v of generation %d, which is placed there, for a newer one", c.id, ref.ShardKey, ref.Generation)
	}
}

// lacking gives a segment that is needed and not whole, though there are servers
// enough to make it so; 0: none.
func (s *Sim) lacking() layout.SegmentID {
	v := s.meta.view()
	for _, d := range v.Devices() {
		page, _ := v.SegmentsOnDevice(d.ID, 0, 0)
		for i := range page {
			if g := &page[i]; v.Needed(g) && (g.Lost != 0 || d.State == state.DeviceDead || d.State == state.DeviceDown) && !s.short(g.ID) {
				return g.ID
			}
		}
	}
	return 0
}

// short tells of a segment that can't be whole: fewer servers are left than it has
// shards. What is left over of it stays.
func (s *Sim) short(id layout.SegmentID) bool {
	alive := 0
	for _, c := range s.chunks {
		if !c.lost {
			alive++
		}
	}
	g, ok := s.meta.view().Segment(id)
	return ok && s.meta.view().Needed(&g) && alive < g.Geometry.Shards()
}

// strayText names the first shard that no segment places where it is.
func (s *Sim) strayText() (text string) {
	s.eachStray(func(c *chunkServer, st store.Stat) {
		if g, _ := s.meta.view().Segment(st.Ref.Segment); text == "" {
			text = fmt.Sprintf(" server %d, device %d has shard %v of generation %d (%v), busy %v; segment %v, lost %b:%s",
				c.id, c.device, st.Ref.ShardKey, st.Ref.Generation, st.State, c.busy[st.Ref.ShardKey], g.State, g.Lost, s.places(&g))
		}
	})
	return text
}

// strays counts shards on devices that no segment places there.
func (s *Sim) strays() (n int) {
	s.eachStray(func(*chunkServer, store.Stat) { n++ })
	return n
}

func (s *Sim) eachStray(visit func(*chunkServer, store.Stat)) {
	v := s.meta.view()
	for _, c := range s.chunks {
		if c.store == nil || c.lost {
			continue
		}
		c.store.Each(func(st store.Stat) bool {
			g, ok := v.Segment(st.Ref.Segment)
			if s.short(st.Ref.Segment) {
				return true
			}
			if !ok || int(st.Ref.Shard) >= len(g.Placements) || g.Placements[st.Ref.Shard] != (state.Placement{Device: c.device, Generation: st.Ref.Generation}) {
				visit(c, st)
			}
			return true
		})
	}
}
