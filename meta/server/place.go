package server

import (
	"context"
	"math/rand/v2"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/placement"
	"strake/meta/state"
)

// chooseHeard chooses once the servers that this leader awaits can't make it better.
func (a *allocation) chooseHeard(ctx context.Context, v *state.Volume) (list []state.PlacedSegment, err error) {
	a.server.await(ctx, func(view *state.View) bool {
		list, err = a.choose(view, v)
		kind := errs.KindOf(err)
		return kind == errs.Frozen || kind == errs.NoSpace || err == nil && list[0].Geometry.K < v.Geometry.K
	})
	return list, err
}

// choose places the segments of an allocation on what is up and has space by
// the newest word.
func (a *allocation) choose(view *state.View, v *state.Volume) ([]state.PlacedSegment, error) {
	s := a.server
	placer := placement.New(placement.Of(view, s.alive.up, s.figures))
	req := placement.Request{Geometry: v.Geometry, Purpose: a.purpose}
	if a.purpose == layout.ForUpkeep {
		req.Purpose = layout.ForData // not from the reserve where there is other room
	}
	for _, id := range a.avoid {
		req.AvoidServers = append(req.AvoidServers, serverID(id))
	}
	for id, err := range a.failed {
		if errs.KindOf(err) != errs.NoSpace {
			req.AvoidDevices = append(req.AvoidDevices, id)
		}
	}
	req.Refused = a.refused
	source := rand.NewPCG(random(), random())
	var held uint64
	if a.ahead > 0 {
		held = heldBy(view, v.ID)
	}
	var list []state.PlacedSegment
	for i := range uint64(a.cmd.Count) {
		if i+a.ahead >= uint64(a.cmd.Count) && !placer.Spares(held) {
			if len(list) == 0 {
				return nil, errs.New(errs.NoSpace, "place segment", "the volume's segments hold %d bytes, an eighth of what is free, and another is not needed yet", held).
					WithHint("ask when it is; delete data, or add devices")
			}
			break
		}
		req.ShardLength = placement.ShardLength(v.Segments+i, view.Cell().ShardLength, a.cmd.ShardLength)
		if a.urgent {
			req.ShardLength = max(a.cmd.ShardLength, layout.BlockSize) // what is needed, and no more
		}
		devices, geometry, err := placer.PlaceShorter(&req, a.cmd.ShardLength, source)
		if a.purpose == layout.ForUpkeep && (errs.KindOf(err) == errs.NoSpace || err == nil && geometry.K < v.Geometry.K) {
			devices, geometry, err = a.fromReserve(placer, &req, source)
		}
		if a.purpose == layout.ForNeed && errs.KindOf(err) == errs.NoSpace {
			devices, geometry, err = a.anyway(placer, &req, source)
		}
		if err != nil {
			if len(list) > 0 {
				break // fewer than asked for are better than none
			}
			return nil, err
		}
		held += uint64(req.ShardLength) * uint64(len(devices))
		list = append(list, state.PlacedSegment{Geometry: geometry, ShardLength: req.ShardLength, Devices: devices})
	}
	return list, nil
}

// fromReserve places a segment for relocated blocks where there is no room for it:
// as short as segments are, since what it takes of the reserve comes back only when
// the blocks' old segments go.
func (a *allocation) fromReserve(placer *placement.Placer, req *placement.Request, source placement.Source) ([]deviceID, layout.Geometry, error) {
	req.Purpose, req.ShardLength = a.purpose, max(a.cmd.ShardLength, layout.FirstShardLength)
	return placer.PlaceShorter(req, a.cmd.ShardLength, source)
}

// anyway places a segment for what must go on where nobody has room for it by the
// last heartbeats; the chunk servers decide.
func (a *allocation) anyway(placer *placement.Placer, req *placement.Request, source placement.Source) ([]deviceID, layout.Geometry, error) {
	if req.Hopeful = true; !a.urgent {
		req.ShardLength = max(a.cmd.ShardLength, layout.FirstShardLength)
	}
	return placer.Place(*req, source)
}

// pressedShare is the part of the cell's space that, once it is all that is free,
// makes cleaning urgent; the reserve is a part of it.
const pressedShare = 6 // a sixth

// pressed tells whether the cell's space is short.
func (s *Server) pressed(view *state.View) bool {
	var total, free uint64
	cluster := placement.Of(view, s.alive.up, s.figures)
	for i := range cluster.Devices {
		total, free = total+cluster.Devices[i].Total, free+cluster.Devices[i].Free()
	}
	return free < total/pressedShare
}

// figures gives a device's newest figures to placement.
func (s *Server) figures(id deviceID) (placement.Figures, bool) {
	said, ok := s.alive.figures(id)
	return placement.Figures{Used: said.Used, Reserved: said.Reserved, Other: said.other}, ok
}

// existing gives the segments that an earlier call of the same command left
// unsealed: a repeat gets them, whatever could be placed now.
func existing(view *state.View, cmd *state.AllocateSegments) (list []layout.SegmentID) {
	eachUnsealed(view, cmd.Volume, func(seg *state.Segment) {
		if seg.Command == cmd.ID && seg.Epoch == cmd.Epoch {
			list = append(list, seg.ID)
		}
	})
	return list
}

// heldBy is what the shards of a volume's unsealed segments take or may take.
func heldBy(view *state.View, volume layout.VolumeID) (bytes uint64) {
	eachUnsealed(view, volume, func(seg *state.Segment) {
		bytes += uint64(seg.ShardLength) * uint64(seg.Geometry.Shards())
	})
	return bytes
}

func eachUnsealed(view *state.View, volume layout.VolumeID, f func(*state.Segment)) {
	for after, more := layout.SegmentID(0), true; more; {
		var page []state.Segment
		page, more = view.Unsealed(volume, after, maxPage)
		for i := range page {
			after = page[i].ID
			f(&page[i])
		}
	}
}
