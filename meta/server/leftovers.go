package server

import (
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// maxChecked bounds the shards of one question.
const maxChecked = 4096

// CheckShards implements pb.MetaServer. The shards are judged twice. The first
// look finds those about which no task runs. Then this server is confirmed as
// leader, and all that was proposed before is applied: what a task recorded whose
// end the first look saw, and what earlier leaders recorded. So the second look
// can't miss a placement; and the caller lets no task begin on a shard that it
// asks about.
func (s *Server) CheckShards(ctx context.Context, r *pb.CheckShardsRequest) (*pb.CheckShardsReply, error) {
	if len(r.GetShards()) > maxChecked {
		return nil, errs.New(errs.TooLarge, "check shards", "%d shards, at most %d", len(r.GetShards()), maxChecked)
	}
	reply := &pb.CheckShardsReply{}
	if r.GetDevice() != 0 {
		reply.Missing = Missing(s.machine.View(), r)
	}
	asked := s.judged(r.GetServer(), r.GetShards(), Leftover, Abandoned)
	if len(asked) == 0 {
		return reply, nil
	}
	if _, err := s.fresh(ctx); err != nil {
		return nil, err
	}
	reply.Leftovers = s.judged(r.GetServer(), asked, Leftover)
	reply.Abandoned = s.judged(r.GetServer(), asked, Abandoned)
	return reply, nil
}

// Missing gives the finalized shards that are placed on a request's device and are
// not among those that it asks about. Whoever asked looks for each of them after the
// answer: a shard is on its device before the state places it there, and what is
// deleted afterwards has moved on in the state, so one that is not found then is
// lost, whatever ran meanwhile. At most maxChecked; the next question gives more.
func Missing(view *state.View, r *pb.CheckShardsRequest) (list []*pb.ShardRef) {
	dev := deviceID(r.GetDevice())
	if d, ok := view.Device(dev); !ok || d.Server != serverID(r.GetServer()) || d.State == state.DeviceDead {
		return nil
	}
	there := map[state.ShardAt]bool{}
	for _, ref := range r.GetShards() {
		there[shardAt(ref)] = true
	}
	for after, more := layout.SegmentID(r.GetAfter()), true; more; {
		var page []state.Segment
		page, more = view.SegmentsOnDevice(dev, after, maxPage)
		for i := range page {
			seg := &page[i]
			after = seg.ID
			if uint64(after) > r.GetThrough() || len(list) >= maxChecked {
				return list
			}
			for n, p := range seg.Placements {
				at := state.ShardAt{Segment: seg.ID, Shard: layout.ShardIndex(n), Generation: p.Generation}
				if p.Device == dev && seg.State == state.Finalized && !seg.Lost.Has(at.Shard) && view.Needed(seg) && !there[at] {
					list = append(list, &pb.ShardRef{Segment: uint64(seg.ID), Shard: uint32(n), Generation: uint32(p.Generation), Device: uint64(dev)})
				}
			}
		}
	}
	return list
}

func shardAt(r *pb.ShardRef) state.ShardAt {
	return state.ShardAt{Segment: layout.SegmentID(r.GetSegment()), Shard: layout.ShardIndex(r.GetShard()), Generation: layout.Generation(r.GetGeneration())}
}

// judged gives those of a server's shards that have one of some standings now.
func (s *Server) judged(server uint64, refs []*pb.ShardRef, wanted ...Standing) (list []*pb.ShardRef) {
	s.control.with(func(p *reconcile.Planner, _ time.Duration) {
		view := s.machine.View()
		for _, ref := range refs {
			if slices.Contains(wanted, Verdict(view, p, s.alive.up, serverID(server), ref)) {
				list = append(list, ref)
			}
		}
	})
	return list
}

// Standing is what a shard on a chunk server's disk is to the state.
type Standing uint8

const (
	PlacedHere Standing = iota // or not known for sure: it stays
	Leftover                   // the state has gone past it, for ever
	Abandoned                  // a rebuild made it, and nothing works on the segment
)

// Verdict judges one shard. What the state has gone past can never be placed
// again: generations only grow, segments that are gone never come back. Still it
// stays until the segment is whole without it.
func Verdict(view *state.View, p *reconcile.Planner, up func(serverID) bool, asks serverID, ref *pb.ShardRef) Standing {
	d, ok := view.Device(deviceID(ref.GetDevice()))
	if !ok || d.Server != asks {
		return PlacedHere
	}
	id := layout.SegmentID(ref.GetSegment())
	if id == 0 || id > view.LastSegment() {
		return PlacedHere // it never was: somebody is wrong, and deleting helps nobody
	}
	if cell := view.Cell(); cell.Unknown(id) {
		return PlacedHere // of the time that a restored backup knows nothing of: people decide
	}
	seg, ok := view.Segment(id)
	if !ok {
		return Leftover
	}
	if int(ref.GetShard()) >= len(seg.Placements) {
		return PlacedHere
	}
	at, generation := seg.Placements[ref.GetShard()], layout.Generation(ref.GetGeneration())
	switch {
	case at.Generation == generation && at.Device == d.ID:
		return PlacedHere
	case p.Rebuilds(id):
		return PlacedHere
	case generation > at.Generation && len(view.Cell().Restored) > 0:
		return PlacedHere // it may have moved after the backup that was restored
	case view.Needed(&seg) && !whole(view, up, &seg) && !planted.Is(planted.DeletedBeforeProof):
		return PlacedHere
	case generation <= at.Generation:
		return Leftover
	}
	return Abandoned
}

// whole is the proof that a segment has k+m good shards: it is finalized, none is
// marked lost, and each is on a device that serves.
func whole(view *state.View, up func(serverID) bool, seg *state.Segment) bool {
	if seg.State != state.Finalized || seg.Lost != 0 {
		return false
	}
	for _, p := range seg.Placements {
		d, _ := view.Device(p.Device)
		srv, _ := view.Server(d.Server)
		if d.State == state.DeviceDead || d.State == state.DeviceDown || !srv.Up || !up(srv.ID) {
			return false
		}
	}
	return true
}
