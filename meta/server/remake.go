package server

import (
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// Remake makes one shard again: a server makes it, then its new place is recorded,
// and only then the old one is deleted. A crash anywhere leaves either the old
// placement and a copy that nobody names, or the new placement and an old copy: both
// are told from the state later, and removed (CheckShards).
//
// The order is here; the calls are the metadata server's, or the seeded cluster's.
type Remake struct {
	View    func() *state.View
	Up      func(serverID) bool // heard lately
	Propose func(state.Command) error
	// Ask has a server make a shard, and waits.
	Ask func(serverID, *pb.RebuildShard) (*pb.RebuiltShard, error)
	// Delete deletes an old shard. That may fail: its server asks for its leftovers
	// by itself.
	Delete func(id serverID, seg *state.Segment, shard layout.ShardIndex, at state.Placement)
}

// Run carries a task out. The result is what the target said, also of a failure.
func (m Remake) Run(t reconcile.Rebuild) (*pb.RebuiltShard, error) {
	view := m.View()
	seg, ok := view.Segment(t.Segment)
	if !ok || seg.Placements[t.Shard] != t.Old {
		return nil, errs.New(errs.StaleGeneration, "", "the shard has moved")
	}
	request := RebuildOut(view, &seg, t)
	if planted.Is(planted.MovedBeforeDurable) {
		if err := m.settle(t); err != nil {
			return nil, err
		}
		return m.Ask(t.Server, request)
	}
	result, err := m.Ask(t.Server, request)
	if err != nil {
		return nil, err
	}
	if err := m.markBad(result.GetBad()); err != nil {
		return result, err
	}
	if kind := errs.Kind(result.GetResult().GetKind()); kind != errs.OK {
		return result, errs.New(kind, "", "chunk server %d: %s", t.Server, result.GetResult().GetMessage())
	}
	return result, m.settle(t)
}

// markBad marks sources lost in which wrong bytes were found.
func (m Remake) markBad(bad []*pb.ShardRef) error {
	var reports []*pb.ShardReport
	for _, ref := range bad {
		reports = append(reports, &pb.ShardReport{Shard: ref, Kind: uint32(errs.Corrupt)})
	}
	lost := Reported(m.View(), reports)
	if len(lost) == 0 {
		return nil
	}
	return m.Propose(state.MarkLost{Shards: lost})
}

// settle records a shard that was made again, and has the old one deleted.
func (m Remake) settle(t reconcile.Rebuild) error {
	if t.InPlace {
		return m.Propose(state.MarkSound{Shards: []state.ShardAt{{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation}}})
	}
	if err := m.Propose(state.ReplaceShard{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation, Device: t.Device}); err != nil {
		return err
	}
	view := m.View()
	seg, ok := view.Segment(t.Segment)
	d, known := view.Device(t.Old.Device)
	if ok && known && d.State != state.DeviceDead && m.Up(d.Server) && t.Old.Device != t.Device {
		m.Delete(d.Server, &seg, t.Shard, t.Old)
	}
	return nil
}

// RebuildOut is a task as its chunk server is asked for it.
func RebuildOut(view *state.View, seg *state.Segment, t reconcile.Rebuild) *pb.RebuildShard {
	generation := t.Old.Generation
	if !t.InPlace {
		generation++
	}
	// A header without payload may stand behind the shard's own last unit, but not
	// behind the segment's.
	length := max(seg.Seal.Shards[seg.Geometry.K].Length, layout.BlockSize)
	out := &pb.RebuildShard{
		Target: &pb.ShardSpec{
			Shard:  &pb.ShardRef{Segment: uint64(seg.ID), Shard: uint32(t.Shard), Generation: uint32(generation), Device: uint64(t.Device)},
			Volume: uint64(seg.Volume), Epoch: uint64(seg.Epoch), Geometry: geometryOut(seg.Geometry), Length: uint64(length), Map: seg.Map, Cell: uint64(view.Cell().ID),
		},
		InPlace: t.InPlace, Seal: sealOut(&seg.Seal), Urgent: reconcile.Urgent(seg.Geometry, t.Spare) && !t.Move,
	}
	for _, src := range t.Sources {
		if srv, ok := view.Server(src.Server); ok {
			out.Sources = append(out.Sources, &pb.RebuildSource{Shard: uint32(src.Index), Generation: uint32(src.Placement.Generation),
				Device: uint64(src.Placement.Device), DataAddress: srv.DataAddress, Doubtful: src.Doubtful})
		}
	}
	return out
}
