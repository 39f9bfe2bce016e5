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

// rebuild has a server make one shard again, and counts it.
func (s *Server) rebuild(ctx context.Context, t reconcile.Rebuild) error {
	began := time.Now()
	result, err := s.remake(ctx).Run(t)
	s.made.note(t, result, err, time.Now())
	if err != nil {
		return errs.Wrap(err, "rebuild shard %d/%d on device %d", t.Segment, t.Shard, t.Device)
	}
	s.log.Info("shard made again", "segment", t.Segment, "shard", t.Shard, "device", t.Device, "old", t.Old.Device,
		"bytes", result.GetWrittenBytes(), "dur", time.Since(began))
	return nil
}

// remake is how this server makes a shard again.
func (s *Server) remake(ctx context.Context) Remake {
	return Remake{
		View:    s.machine.View,
		Up:      s.alive.up,
		Propose: func(cmd state.Command) error { return s.do(ctx, cmd) },
		Ask: func(id serverID, r *pb.RebuildShard) (*pb.RebuiltShard, error) {
			return s.callRebuild(ctx, id, r)
		},
		Delete: func(id serverID, seg *state.Segment, shard layout.ShardIndex, at state.Placement) {
			old := map[serverID][]placed{id: {{segment: seg, shard: shard, server: id, place: at}}}
			if failed := s.deleteShards(ctx, s.machine.View(), old); len(failed) > 0 {
				s.log.Warn("old shard not deleted yet", "segment", seg.ID, "shard", shard, "device", at.Device, "err", failed[0].err)
			}
		},
	}
}

// callRebuild asks a chunk server to make a shard.
func (s *Server) callRebuild(ctx context.Context, id serverID, r *pb.RebuildShard) (*pb.RebuiltShard, error) {
	c, err := s.chunk(s.machine.View(), id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timing.RebuildCall)
	defer cancel()
	reply, err := c.RebuildShards(ctx, &pb.RebuildShardsRequest{Shards: []*pb.RebuildShard{r}})
	if err != nil {
		return nil, errs.Wrap(pb.FromStatus(err), "chunk server %d", id)
	}
	if len(reply.Results) != 1 {
		return nil, errs.New(errs.Unavailable, "", "chunk server %d gave %d results", id, len(reply.Results))
	}
	return reply.Results[0], nil
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
