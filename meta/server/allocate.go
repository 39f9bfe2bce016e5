package server

import (
	"context"
	"fmt"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// allocateTries bounds how often one call chooses again after a device failed, or had
// less room than its last heartbeat told: a long shard is halved four times.
const allocateTries = 8

// AllocateSegments implements pb.MetaServer. The choice is one Raft entry, the
// record that all shards exist is a second; in between the shards are created
// in parallel. Segments of which one could not be created are dropped, and
// others are placed without the device that failed, or shorter where it had too little
// room.
func (s *Server) AllocateSegments(ctx context.Context, r *pb.AllocateSegmentsRequest) (*pb.AllocateSegmentsReply, error) {
	cmd := state.AllocateSegments{
		ID: state.CommandID(r.GetCommand()), Session: sessionID(r.GetSession()), Volume: layout.VolumeID(r.GetVolume()),
		Epoch: layout.Epoch(r.GetEpoch()), Map: r.GetMap(), Count: r.GetCount(), ShardLength: layout.ShardOffset(r.GetShardLength()),
	}
	if err := s.checkAllocate(cmd); err != nil {
		return nil, err
	}
	job := &allocation{server: s, cmd: cmd, avoid: r.GetAvoidServers(), urgent: r.GetUrgent(), ahead: uint64(r.GetAhead()),
		failed: map[deviceID]error{}, refused: map[deviceID]layout.ShardOffset{}}
	switch {
	case job.urgent || cmd.Map:
		job.purpose = layout.ForNeed
	case r.GetCleaning():
		job.purpose = layout.ForUpkeep
	}
	defer s.creating.done(job)
	var err error
	for range allocateTries {
		var segments []layout.SegmentID
		if segments, err = job.try(ctx); err == nil {
			return s.allocated(segments), nil
		}
		if ctx.Err() != nil || !job.again {
			break
		}
	}
	return nil, err
}

// checkAllocate refuses early what Apply would refuse after a choice was made.
func (s *Server) checkAllocate(c state.AllocateSegments) error {
	if c.Count < 1 || c.Count > state.MaxAllocate {
		return errs.New(errs.InvalidArgument, "allocate segments", "%d segments, from 1 to %d are allowed", c.Count, state.MaxAllocate)
	}
	if c.ShardLength < 0 || c.ShardLength > layout.MaxShardLength {
		return errs.New(errs.InvalidArgument, "allocate segments", "shards of %d bytes, at most %d are allowed", c.ShardLength, layout.MaxShardLength)
	}
	v, err := s.machine.View().Resolve(state.VolumeRef{ID: c.Volume})
	if err != nil {
		return err
	}
	return errs.Wrap(holds(&v, c.Session, c.Epoch), "allocate segments")
}

func (s *Server) allocated(ids []layout.SegmentID) *pb.AllocateSegmentsReply {
	view := s.machine.View()
	var list []state.Segment
	for _, id := range ids {
		if seg, ok := view.Segment(id); ok {
			list = append(list, seg)
		}
	}
	reply := &pb.AllocateSegmentsReply{}
	reply.Segments, reply.Servers = s.located(view, list)
	return reply
}

// allocation is one call of AllocateSegments under way.
type allocation struct {
	server  *Server
	cmd     state.AllocateSegments
	avoid   []uint64
	urgent  bool                            // of what must go on in a full cell: short shards, which may lie in the reserve
	ahead   uint64                          // of the count, so many are not needed yet
	failed  map[deviceID]error              // devices that could not create a shard, with the reason
	refused map[deviceID]layout.ShardOffset // the shortest for which they had no room
	again   bool                            // the last try failed because of devices, of which less is asked from now on
	purpose layout.Purpose
}

// try chooses, records, creates and opens once.
func (a *allocation) try(ctx context.Context) ([]layout.SegmentID, error) {
	a.again = false
	s := a.server
	segments, err := a.record(ctx)
	if err != nil {
		return nil, err
	}
	s.creating.add(a, segments)
	dead, err := a.create(ctx, s.machine.View(), segments)
	if err != nil {
		return nil, err
	}
	if dead, err = a.drop(ctx, dead); err != nil {
		return nil, err
	}
	live := slices.DeleteFunc(slices.Clone(segments), func(id layout.SegmentID) bool { return slices.Contains(dead, id) })
	if len(live) == 0 {
		a.again = true
		return nil, a.refusal()
	}
	_, err = s.propose(ctx, state.OpenSegments{Segments: live})
	return live, err
}

// drop gives segments up whose shards could not be made, and tells which. It leaves those
// that are open: another call of the same command, for which the writer did not wait any
// longer, made all their shards meanwhile.
func (a *allocation) drop(ctx context.Context, dead []layout.SegmentID) ([]layout.SegmentID, error) {
	for len(dead) > 0 {
		_, err := a.server.propose(ctx, state.DropSegments{Segments: dead})
		if errs.KindOf(err) != errs.Conflict {
			return dead, err
		}
		dead = withoutOpen(a.server.machine.View(), dead)
	}
	return nil, nil
}

// withoutOpen gives the segments of a list that nobody opened.
func withoutOpen(view *state.View, list []layout.SegmentID) []layout.SegmentID {
	return slices.DeleteFunc(slices.Clone(list), func(id layout.SegmentID) bool {
		g, ok := view.Segment(id)
		return ok && g.State != state.Allocated && g.State != state.Dropped
	})
}

// record gives the segments of the command: those of an earlier call, or new
// ones, placed and recorded.
func (a *allocation) record(ctx context.Context) ([]layout.SegmentID, error) {
	view := a.server.machine.View()
	if ids := existing(view, &a.cmd); len(ids) > 0 {
		return ids, nil
	}
	v, err := view.Resolve(state.VolumeRef{ID: a.cmd.Volume})
	if err != nil {
		return nil, err
	}
	cmd := a.cmd
	if cmd.Placed, err = a.chooseHeard(ctx, &v); err != nil {
		if len(a.failed) > 0 {
			return nil, a.refusal() // the devices that failed are why there are too few
		}
		return nil, err
	}
	result, err := a.server.propose(ctx, cmd)
	return result.Segments, err
}

// create makes the shards of segments that have none yet, and gives the
// segments of which at least one shard could not be made.
func (a *allocation) create(ctx context.Context, view *state.View, ids []layout.SegmentID) (dead []layout.SegmentID, err error) {
	var todo []state.Segment
	for _, id := range ids {
		if seg, ok := view.Segment(id); ok && seg.State == state.Allocated {
			todo = append(todo, seg)
		}
	}
	for _, f := range a.server.createShards(ctx, view, todo, a.purpose) {
		if ctx.Err() != nil {
			return nil, errs.Wrap(ctx.Err(), "create shards")
		}
		a.server.log.Warn("shard not created", "segment", f.segment.ID, "shard", f.shard, "device", f.place.Device, "err", f.err)
		a.note(f)
		if !slices.Contains(dead, f.segment.ID) {
			dead = append(dead, f.segment.ID)
		}
	}
	return dead, nil
}

// note keeps why a shard could not be made. A device that had no room for it may have
// some for a shorter one.
func (a *allocation) note(f failure) {
	id := f.place.Device
	a.failed[id] = f.err
	if errs.KindOf(f.err) != errs.NoSpace {
		return
	}
	if length, ok := a.refused[id]; !ok || f.segment.ShardLength < length {
		a.refused[id] = f.segment.ShardLength
	}
}

// refusal says why no segment could be made.
func (a *allocation) refusal() error {
	kind := errs.NoSpace
	var last error
	for _, err := range a.failed {
		if last = err; errs.KindOf(err) != errs.NoSpace {
			kind = errs.Unavailable
		}
	}
	err := &errs.Error{Kind: kind, Op: fmt.Sprintf("allocate segments: no shard on %d devices", len(a.failed)), Cause: last}
	if kind == errs.NoSpace {
		err.Hint = "delete something, or add devices"
	}
	return err
}
