package sim

import (
	"math/rand/v2"
	"slices"

	"strake/chunkd/store"
	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/placement"
	"strake/meta/reconcile"
	"strake/meta/server"
	"strake/meta/state"
	"strake/proto/frame"
)

const allocateTries = 4

// allocation is one call of AllocateSegments under way: place and record, create
// the shards, record that they exist. The same steps as the metadata server's.
type allocation struct {
	m      *metaService
	f      *simclient.Fiber
	q      *simclient.AllocateSegments
	failed map[layout.DeviceID]error
	again  bool
}

func (m *metaService) allocate(f *simclient.Fiber, q *simclient.AllocateSegments) (any, error) {
	v, err := m.view().Resolve(state.VolumeRef{ID: q.Volume})
	switch {
	case err != nil:
		return nil, err
	case q.Epoch != v.Epoch:
		return nil, errs.New(errs.StaleEpoch, "allocate segments", "volume %d is written under epoch %d, not %d", v.ID, v.Epoch, q.Epoch)
	case q.Session != v.Holder:
		return nil, errs.New(errs.LeaseLost, "allocate segments", "session %d does not hold volume %d", q.Session, v.ID)
	}
	a := &allocation{m: m, f: f, q: q, failed: map[layout.DeviceID]error{}}
	for range allocateTries {
		var ids []layout.SegmentID
		if ids, err = a.try(); err == nil {
			return m.located(ids), nil
		}
		if !a.again {
			break
		}
	}
	return nil, err
}

// try chooses, records, creates and opens once.
func (a *allocation) try() ([]layout.SegmentID, error) {
	a.again = false
	m := a.m
	ids, err := a.record()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		m.creating[id] = true
	}
	dead, err := a.create(ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		delete(m.creating, id)
	}
	if dead, err = a.drop(dead); err != nil {
		return nil, err
	}
	live := slices.DeleteFunc(slices.Clone(ids), func(id layout.SegmentID) bool { return slices.Contains(dead, id) })
	if len(live) == 0 {
		a.again = true
		return nil, errs.New(errs.Unavailable, "allocate segments", "no shard on %d devices", len(a.failed))
	}
	_, err = m.propose(a.f, state.OpenSegments{Segments: live})
	return live, err
}

// drop gives segments up whose shards could not be made, but those that another call of
// the same command opened meanwhile.
func (a *allocation) drop(dead []layout.SegmentID) ([]layout.SegmentID, error) {
	for len(dead) > 0 {
		_, err := a.m.propose(a.f, state.DropSegments{Segments: dead})
		if errs.KindOf(err) != errs.Conflict {
			return dead, err
		}
		a.m.s.rare("a segment opened by an earlier call of its command")
		view := a.m.view()
		dead = slices.DeleteFunc(slices.Clone(dead), func(id layout.SegmentID) bool {
			g, ok := view.Segment(id)
			return ok && g.State != state.Allocated && g.State != state.Dropped
		})
	}
	return nil, nil
}

// record gives the segments of an earlier call of the command, or new ones.
func (a *allocation) record() ([]layout.SegmentID, error) {
	view := a.m.view()
	var ids []layout.SegmentID
	page, _ := view.Unsealed(a.q.Volume, 0, 0)
	for i := range page {
		if page[i].Command == state.CommandID(a.q.Command) && page[i].Epoch == a.q.Epoch {
			ids = append(ids, page[i].ID)
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	v, err := view.Resolve(state.VolumeRef{ID: a.q.Volume})
	if err != nil {
		return nil, err
	}
	placed, err := a.choose(view, &v)
	if err != nil {
		return nil, err
	}
	r, err := a.m.propose(a.f, state.AllocateSegments{ID: state.CommandID(a.q.Command), Session: a.q.Session, Volume: a.q.Volume,
		Epoch: a.q.Epoch, Map: a.q.Map, Count: uint32(a.q.Count), ShardLength: a.q.Length, Placed: placed})
	return r.Segments, err
}

// purpose is what the segments are for.
func (a *allocation) purpose() layout.Purpose {
	switch {
	case a.q.Urgent || a.q.Map:
		return layout.ForNeed
	case a.q.Clean:
		return layout.ForUpkeep
	}
	return layout.ForData
}

// choose places segments on what is up, by the newest word.
func (a *allocation) choose(view *state.View, v *state.Volume) (list []state.PlacedSegment, err error) {
	m := a.m
	placer := placement.New(placement.Of(view, m.alive, func(id layout.DeviceID) (placement.Figures, bool) {
		d, ok := m.figures[id]
		// No segment is refused for want of space here.
		return placement.Figures{Used: d.Used / m.s.scale, Reserved: d.Reserved / m.s.scale}, ok
	}))
	req := placement.Request{Geometry: v.Geometry, Purpose: a.purpose(), AvoidServers: a.q.Avoid, AvoidDevices: sortedIDs(a.failed)}
	source := rand.NewPCG(m.s.rand.Uint64(), m.s.rand.Uint64())
	for i := range uint64(a.q.Count) {
		req.ShardLength = placement.ShardLength(v.Segments+i, view.Cell().ShardLength, a.q.Length)
		if a.q.Urgent {
			req.ShardLength = max(a.q.Length, layout.BlockSize)
		}
		devices, g, err := placer.Place(req, source)
		if err != nil {
			if len(list) > 0 {
				break
			}
			return nil, err
		}
		if g.K < v.Geometry.K {
			m.s.rare("k narrowed")
		}
		list = append(list, state.PlacedSegment{Geometry: g, ShardLength: req.ShardLength, Devices: devices})
	}
	return list, nil
}

// create makes the shards of segments that have none yet, and gives the segments
// of which one could not be made.
func (a *allocation) create(ids []layout.SegmentID) (dead []layout.SegmentID, err error) {
	requests := map[layout.ServerID][]any{}
	var todo []state.Segment
	view := a.m.view()
	for _, id := range ids {
		g, ok := view.Segment(id)
		if !ok || g.State != state.Allocated {
			continue
		}
		todo = append(todo, g)
		for i, p := range g.Placements {
			d, _ := view.Device(p.Device)
			requests[d.Server] = append(requests[d.Server], &createShards{[]store.ShardSpec{{
				Key: layout.ShardKey{Segment: g.ID, Shard: layout.ShardIndex(i)}, Generation: p.Generation, Cell: cellID, Volume: g.Volume,
				Epoch: g.Epoch, Geometry: g.Geometry, Length: g.ShardLength, Map: g.Map, Purpose: a.purpose()}}})
		}
	}
	failed := a.m.askAll(a.f, requests)
	for i := range todo {
		for _, p := range todo[i].Placements {
			d, _ := view.Device(p.Device)
			if e := failed[d.Server]; e != nil {
				a.failed[p.Device] = e
				if !slices.Contains(dead, todo[i].ID) {
					dead = append(dead, todo[i].ID)
				}
			}
		}
	}
	if a.m.leader < 0 {
		return nil, errs.New(errs.Unavailable, "create shards", "the term ended")
	}
	return dead, nil
}

// deleteSegment deletes a segment's shards, then takes it out of the state.
func (m *metaService) deleteSegment(f *simclient.Fiber, t reconcile.Delete) error {
	requests := map[layout.ServerID][]any{}
	for _, sh := range t.Shards {
		requests[sh.Server] = append(requests[sh.Server], &deleteShard{refOf(t.Segment, sh)})
	}
	failed := m.askAll(f, requests)
	for _, id := range sortedIDs(failed) {
		if kind := errs.KindOf(failed[id]); kind != errs.NotHere && kind != errs.NotFound {
			return failed[id]
		}
	}
	_, err := m.propose(f, state.MarkDeleted{Segments: []layout.SegmentID{t.Segment}})
	return err
}

// finalizeSegment brings a segment's seal to its shards, then records it. Shards
// that do not match it, or were not asked, are marked lost before.
func (m *metaService) finalizeSegment(f *simclient.Fiber, t reconcile.Finalize) error {
	g, ok := m.view().Segment(t.Segment)
	if !ok || g.State != state.Sealed {
		return nil
	}
	requests := map[layout.ServerID][]any{}
	for _, sh := range t.Shards {
		requests[sh.Server] = append(requests[sh.Server], &finalizeShards{refOf(t.Segment, sh), g.Seal.Last, g.Seal.Stripe().Shards[sh.Index]})
	}
	failed, byShard := m.askAll(f, requests), map[layout.ShardIndex]error{}
	for _, sh := range t.Shards { // a server has one of them
		if byShard[sh.Index] = failed[sh.Server]; errs.KindOf(failed[sh.Server]) == errs.Corrupt {
			m.s.rare("a shard found incomplete at its seal")
		}
	}
	lost, err := server.LostOf(&g, t.Shards, byShard)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		if _, err := m.propose(f, state.MarkLost{Shards: lost}); err != nil {
			return err
		}
	}
	_, err = m.propose(f, state.MarkFinalized{Segments: []layout.SegmentID{t.Segment}})
	return err
}

func refOf(id layout.SegmentID, sh reconcile.Shard) frame.ShardRef {
	return frame.ShardRef{ShardKey: layout.ShardKey{Segment: id, Shard: sh.Index}, Generation: sh.Placement.Generation}
}
