package reconcile

import (
	"slices"

	"strake/internal/layout"
	"strake/meta/state"
)

// giveBacks drops segments whose shards were not created in time. If their
// creation ends well after all, OpenSegments is refused, and nobody was told
// of them.
func (pl *plan) giveBacks() {
	page, more := pl.view.Allocated(pl.p.allocatedAfter, pl.p.limits.Scan)
	for _, s := range page {
		pl.p.allocatedAfter = s.ID
		if pl.p.allocated.see(s.ID, pl.now) >= pl.p.limits.CreateWithin {
			pl.add(GiveBack{Segment: s.ID})
		}
	}
	if !more {
		pl.p.allocatedAfter = 0
		pl.p.allocated.passed()
	}
}

// finalizes brings seals to shards, once all servers of a segment are up or
// given up. A segment that has lost a shard waits for nobody else, for until it is
// finalized it can't be rebuilt: shards out of reach are then marked lost. Fewer
// than k shards prove nothing: then it waits for servers to come back.
func (pl *plan) finalizes() {
	if pl.full(kindFinalize) {
		return // go on from the same place
	}
	page, more := pl.view.Unfinalized(pl.p.unfinalizedAfter, pl.p.limits.Scan)
	for _, s := range page {
		if pl.full(kindFinalize) {
			return
		}
		pl.p.unfinalizedAfter = s.ID
		if !pl.view.Needed(&s) {
			continue // of a volume that was purged
		}
		if shards, all := pl.shards(&s); (all || pl.endangered(&s)) && len(shards) >= int(s.Geometry.K) {
			pl.add(Finalize{Segment: s.ID, Shards: shards})
		}
	}
	if !more {
		pl.p.unfinalizedAfter = 0
	}
}

// deletes removes the shards of segments that nothing names any more: those
// that were dropped or retired, then those of purged volumes.
func (pl *plan) deletes() {
	page, more := pl.view.Deletable(pl.p.deletableAfter, pl.p.limits.Scan)
	for _, s := range page {
		if pl.full(kindDelete) {
			return
		}
		pl.p.deletableAfter = s.ID
		pl.delete(&s)
	}
	if !more {
		pl.p.deletableAfter = 0
		pl.deletePurged()
	}
}

// deletePurged goes on in the purged volumes, one page of one volume a plan.
func (pl *plan) deletePurged() {
	volumes, _ := pl.view.Purged(pl.p.purgedAfter, 1)
	if len(volumes) == 0 {
		pl.p.purgedAfter, pl.p.purgedSegment = 0, 0
		return
	}
	id := volumes[0].ID
	page, more := pl.view.SegmentsOfVolume(id, pl.p.purgedSegment, pl.p.limits.Scan)
	for _, s := range page {
		if pl.full(kindDelete) {
			return
		}
		pl.p.purgedSegment = s.ID
		if !pl.view.Needed(&s) { // else a snapshot stays that branches stand on
			pl.delete(&s)
		}
	}
	if !more {
		pl.p.purgedAfter, pl.p.purgedSegment = id, 0
	}
}

// frees looks for retired segments that snapshots needed which are gone, one
// step of each volume a plan.
func (pl *plan) frees() {
	page, _ := pl.view.Freeing(0, pl.p.limits.most(kindFree))
	for _, v := range page {
		pl.add(Free{Volume: v.ID})
	}
}

// delete has a segment deleted where its shards can be asked now. For a server that is
// down it waits a moment, since it is mostly back soon; one that was away for longer
// finds its shard to be a leftover when it comes back. Else one server that is down
// would keep all space of a cell of k+m servers from coming back.
func (pl *plan) delete(s *state.Segment) {
	s.Lost = 0 // a lost shard is deleted like any other
	shards, all := pl.shards(s)
	if all || pl.othersGone(s, shards) {
		pl.add(Delete{Segment: s.ID, Shards: shards})
	}
}

// othersGone tells whether all of a segment's devices but those of some shards have
// been gone for DeleteAfter, or for good.
func (pl *plan) othersGone(s *state.Segment, but []Shard) bool {
	for i, place := range s.Placements {
		if slices.ContainsFunc(but, func(sh Shard) bool { return int(sh.Index) == i }) {
			continue
		}
		d, _ := pl.view.Device(place.Device)
		since, gone := pl.p.gone.since[place.Device]
		if d.State != state.DeviceDead && !(gone && pl.now-since >= pl.p.limits.DeleteAfter) {
			return false
		}
	}
	return true
}

// endangered tells whether a shard of the segment is gone for good.
func (pl *plan) endangered(s *state.Segment) bool {
	return slices.ContainsFunc(s.Placements, func(p state.Placement) bool {
		d, _ := pl.view.Device(p.Device)
		return d.State == state.DeviceDead
	})
}

// shards are where a segment's shards must be asked; dead devices have none, and
// those marked lost are not asked. all is false when one can't be asked now.
func (pl *plan) shards(s *state.Segment) (shards []Shard, all bool) {
	all = true
	for i, place := range s.Placements {
		d, _ := pl.view.Device(place.Device)
		if d.State == state.DeviceDead || s.Lost.Has(layout.ShardIndex(i)) {
			continue
		}
		if server, _ := pl.view.Server(d.Server); !server.Up || d.State == state.DeviceDown || pl.silent(server.ID) {
			all = false
			continue
		}
		shards = append(shards, Shard{Index: layout.ShardIndex(i), Server: d.Server, Placement: place})
	}
	return shards, all
}
