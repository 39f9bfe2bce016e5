package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// rebuild has a server make one shard again, records its new place, and only then
// has the old one deleted. A crash anywhere leaves either the old placement and a
// copy that nobody names, or the new placement and an old copy: both are told
// from the state later, and removed (CheckShards).
func (s *Server) rebuild(ctx context.Context, t reconcile.Rebuild) error {
	began := time.Now()
	result, err := s.callRebuild(ctx, t)
	if err == nil {
		err = s.settle(ctx, t)
	}
	s.made.note(t, result, err, time.Now())
	if err != nil {
		return errs.Wrap(err, "rebuild shard %d/%d on device %d", t.Segment, t.Shard, t.Device)
	}
	s.log.Info("shard made again", "segment", t.Segment, "shard", t.Shard, "device", t.Device, "old", t.Old.Device,
		"bytes", result.GetWrittenBytes(), "dur", time.Since(began))
	return nil
}

// callRebuild asks the target and marks sources in which it found wrong bytes.
func (s *Server) callRebuild(ctx context.Context, t reconcile.Rebuild) (*pb.RebuiltShard, error) {
	view := s.machine.View()
	seg, ok := view.Segment(t.Segment)
	if !ok || seg.Placements[t.Shard] != t.Old {
		return nil, errs.New(errs.StaleGeneration, "", "the shard has moved")
	}
	c, err := s.chunk(view, t.Server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timing.RebuildCall)
	defer cancel()
	r, err := c.RebuildShards(ctx, &pb.RebuildShardsRequest{Shards: []*pb.RebuildShard{RebuildOut(view, &seg, t)}})
	if err != nil {
		return nil, errs.Wrap(pb.FromStatus(err), "chunk server %d", t.Server)
	}
	if len(r.Results) != 1 {
		return nil, errs.New(errs.Unavailable, "", "chunk server %d gave %d results", t.Server, len(r.Results))
	}
	result := r.Results[0]
	if err := s.markBad(ctx, result.Bad); err != nil {
		return result, err
	}
	if kind := errs.Kind(result.GetResult().GetKind()); kind != errs.OK {
		return result, errs.New(kind, "", "chunk server %d: %s", t.Server, result.GetResult().GetMessage())
	}
	return result, nil
}

func (s *Server) markBad(ctx context.Context, bad []*pb.ShardRef) error {
	var reports []*pb.ShardReport
	for _, ref := range bad {
		reports = append(reports, &pb.ShardReport{Shard: ref, Kind: uint32(errs.Corrupt)})
	}
	return s.markReported(ctx, reports)
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
		InPlace: t.InPlace, Seal: sealOut(&seg.Seal), Urgent: t.Spare <= 0 && !t.Move,
	}
	for _, src := range t.Sources {
		if srv, ok := view.Server(src.Server); ok {
			out.Sources = append(out.Sources, &pb.RebuildSource{Shard: uint32(src.Index), Generation: uint32(src.Placement.Generation),
				Device: uint64(src.Placement.Device), DataAddress: srv.DataAddress, Doubtful: src.Doubtful})
		}
	}
	return out
}

// settle records a shard that was made again, and has the old one deleted. That
// may fail: the old shard's server asks for its leftovers by itself.
func (s *Server) settle(ctx context.Context, t reconcile.Rebuild) error {
	if t.InPlace {
		return s.do(ctx, state.MarkSound{Shards: []state.ShardAt{{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation}}})
	}
	if err := s.do(ctx, state.ReplaceShard{Segment: t.Segment, Shard: t.Shard, Generation: t.Old.Generation, Device: t.Device}); err != nil {
		return err
	}
	view := s.machine.View()
	seg, ok := view.Segment(t.Segment)
	if d, known := view.Device(t.Old.Device); !ok || !known || d.State == state.DeviceDead || !s.alive.up(d.Server) || t.Old.Device == t.Device {
		return nil
	} else if failed := s.deleteShards(ctx, view, map[serverID][]placed{d.Server: {{segment: &seg, shard: t.Shard, server: d.Server, place: t.Old}}}); len(failed) > 0 {
		s.log.Warn("old shard not deleted yet", "segment", t.Segment, "shard", t.Shard, "device", t.Old.Device, "err", failed[0].err)
	}
	return nil
}

// rateWindow is over how long the speed of rebuilds is taken.
const rateWindow = 20 * time.Second

// made counts what was made again since this server leads.
type made struct {
	mu                        sync.Mutex // guards all below
	rebuilt, repaired, failed uint64     // shards
	bytes                     uint64
	moved, movedBytes         uint64 // by rebalances
	lastErr                   string

	begun            time.Time // of the window under way
	window, previous uint64    // bytes in it and in the one before
}

func (m *made) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rebuilt, m.repaired, m.failed, m.bytes, m.moved, m.movedBytes, m.lastErr, m.window, m.previous = 0, 0, 0, 0, 0, 0, "", 0, 0
}

func (m *made) note(t reconcile.Rebuild, r *pb.RebuiltShard, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	switch {
	case err != nil:
		m.failed++
		m.lastErr = fmt.Sprintf("shard %d/%d on device %d: %v", t.Segment, t.Shard, t.Device, err)
	case t.InPlace:
		m.repaired++
	case t.Balance:
		m.moved++
		m.movedBytes += r.GetWrittenBytes()
	default:
		m.rebuilt++
	}
	if err == nil {
		m.bytes += r.GetWrittenBytes()
		m.window += r.GetWrittenBytes()
	}
}

// turn begins a new window when the last one is over.
func (m *made) turn(now time.Time) {
	switch age := now.Sub(m.begun); {
	case age > 2*rateWindow:
		m.begun, m.window, m.previous = now, 0, 0
	case age > rateWindow:
		m.begun, m.window, m.previous = now, 0, m.window
	}
}

// rate is bytes a second, lately.
func (m *made) rate(now time.Time) uint64 {
	m.turn(now)
	seconds := now.Sub(m.begun).Seconds()
	if m.previous > 0 {
		seconds += rateWindow.Seconds()
	}
	return uint64(float64(m.window+m.previous) / max(1, seconds))
}

// RebuildStatus implements pb.MetaServer.
func (s *Server) RebuildStatus(ctx context.Context, _ *pb.RebuildStatusRequest) (*pb.RebuildStatusReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	r := &pb.RebuildStatusReply{RebuildAfterMs: uint64(s.opts.Timing.RebuildAfter.Milliseconds())}
	s.control.with(func(p *reconcile.Planner, _ time.Duration) {
		met, running := p.Progress()
		r.LostShards, r.LostBytes, r.MovingShards, r.MovingBytes = uint64(met.Shards), met.Bytes, uint64(met.Moving), met.MoveBytes
		r.AtRisk, r.Lacking, r.Homeless, r.Running = uint64(met.AtRisk), uint64(met.Lacking), uint64(met.Homeless), uint64(running)
	})
	m := s.made
	m.mu.Lock()
	defer m.mu.Unlock()
	r.RebuiltShards, r.RebuiltBytes, r.RepairedShards, r.Failed, r.LastError = m.rebuilt, m.bytes, m.repaired, m.failed, m.lastErr
	if r.BytesPerSecond = m.rate(time.Now()); r.BytesPerSecond > 0 {
		r.EtaS = (r.LostBytes + r.MovingBytes + r.BytesPerSecond - 1) / r.BytesPerSecond
	}
	for _, d := range view.Devices() {
		srv, _ := view.Server(d.Server)
		if d.State != state.DeviceDead && (d.State == state.DeviceDown || !srv.Up) {
			r.Waiting = append(r.Waiting, fmt.Sprintf("device %d of server %d at %s", d.ID, srv.ID, srv.ControlAddress))
		}
	}
	return r, nil
}
