package server

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// LostOf gives the shards of a segment that its finalization goes on without, by
// what went wrong with each of those that were asked. An error means that it can't go
// on: a server did not answer for its shard, or fewer than k are sound. Whatever a
// server says of a shard itself costs that shard alone: it is rebuilt, and nothing
// waits for it.
func LostOf(seg *state.Segment, asked []reconcile.Shard, failed map[layout.ShardIndex]error) (lost []state.ShardAt, err error) {
	var sound layout.Mask
	for _, a := range asked {
		switch bad := failed[a.Index]; {
		case bad == nil:
			sound = sound.With(a.Index)
		case !lasting(bad):
			return nil, bad
		default:
			err = bad
		}
	}
	if sound.Count() < int(seg.Geometry.K) {
		return nil, errs.As(err, errs.Undecided, "finalize segment %d: %d sound shards of %v", seg.ID, sound.Count(), seg.Geometry)
	}
	for i, p := range seg.Placements {
		if !sound.Has(layout.ShardIndex(i)) {
			lost = append(lost, state.ShardAt{Segment: seg.ID, Shard: layout.ShardIndex(i), Generation: p.Generation})
		}
	}
	return lost, nil
}

// lasting tells whether what a server answered for a shard is about the shard and
// stays the same however often it is asked for. A device that failed, a server that
// is busy or gone, say nothing about the shard.
func lasting(err error) bool {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Deadline, errs.Canceled, errs.Busy, errs.Closed, errs.Overloaded, errs.NoSpace, errs.WrongCell:
		return false
	}
	return true
}

// markReported marks shards lost that were found bad where they are placed.
func (s *Server) markReported(ctx context.Context, reports []*pb.ShardReport) error {
	lost := Reported(s.machine.View(), reports)
	if len(lost) == 0 {
		return nil
	}
	return s.do(ctx, state.MarkLost{Shards: lost})
}

// Reported gives the shards that were found corrupt, or missing, or in another
// generation, where their segment's placement says they are. What was said of an
// older placement, or of a segment that is still written, is passed over.
func Reported(view *state.View, reports []*pb.ShardReport) (lost []state.ShardAt) {
	for _, r := range reports {
		switch errs.Kind(r.GetKind()) {
		case errs.Corrupt, errs.NotHere, errs.StaleGeneration:
		default:
			continue
		}
		at := shardAt(r.GetShard())
		seg, ok := view.Segment(at.Segment)
		if !ok || seg.State != state.Finalized || int(r.GetShard().GetShard()) >= len(seg.Placements) || seg.Lost.Has(at.Shard) {
			continue
		}
		p := seg.Placements[at.Shard]
		if p.Generation == at.Generation && uint64(p.Device) == r.GetShard().GetDevice() && len(lost) < state.MaxSegmentList {
			lost = append(lost, at)
		}
	}
	return lost
}
