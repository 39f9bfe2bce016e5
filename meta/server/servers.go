package server

import (
	"context"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
)

// RegisterServer implements pb.MetaServer. It is idempotent by the UUIDs.
func (s *Server) RegisterServer(ctx context.Context, r *pb.RegisterServerRequest) (*pb.RegisterServerReply, error) {
	cmd, err := registerIn(r)
	if err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, cmd)
	if err != nil {
		return nil, err
	}
	view := s.machine.View()
	reply := &pb.RegisterServerReply{Cell: uint64(result.Cell), Server: uint64(result.Server)}
	for _, id := range result.Devices {
		d, ok := view.Device(id)
		if !ok {
			return nil, errs.New(errs.Internal, "register server", "device %d is gone", id)
		}
		reply.Devices = append(reply.Devices, deviceOut(&d))
	}
	return reply, nil
}

// Heartbeat implements pb.MetaServer. It writes nothing: heartbeats are the
// leader's soft state, and the controllers record what changed much.
func (s *Server) Heartbeat(_ context.Context, r *pb.HeartbeatRequest) (*pb.HeartbeatReply, error) {
	view := s.machine.View()
	srv, ok := view.Server(serverID(r.GetServer()))
	if !ok {
		return nil, errs.New(errs.NotFound, "heartbeat", "server %d is not registered", r.GetServer()).
			WithHint("register again")
	}
	updates, err := updatesIn(r.GetDevices())
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if d, ok := view.Device(u.Device); !ok || d.Server != srv.ID {
			return nil, errs.New(errs.InvalidArgument, "heartbeat", "device %d is not one of server %d", u.Device, srv.ID)
		}
	}
	s.heard(srv.ID, updates)
	if !srv.Up {
		s.wake()
	}
	reply := &pb.HeartbeatReply{IntervalMs: uint32(s.opts.Timing.ServerSilence.Milliseconds() / heartbeatsPerSilence)}
	s.qosHeartbeat(view, &srv, r, reply)
	return reply, nil
}

// heartbeatsPerSilence is how many heartbeats in a row may be lost before a
// server counts as down.
const heartbeatsPerSilence = 6

// ListServers implements pb.MetaServer.
func (s *Server) ListServers(ctx context.Context, _ *pb.ListServersRequest) (*pb.ListServersReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	reply := &pb.ListServersReply{}
	for _, srv := range view.Servers() {
		reply.Servers = append(reply.Servers, s.serverOut(view, &srv))
	}
	return reply, nil
}

// ReportShards implements pb.MetaServer.
func (s *Server) ReportShards(ctx context.Context, r *pb.ReportShardsRequest) (*pb.ReportShardsReply, error) {
	if len(r.GetReports()) > maxReports {
		return nil, errs.New(errs.TooLarge, "report shards", "%d reports, at most %d", len(r.GetReports()), maxReports)
	}
	for _, report := range r.GetReports() {
		shard := layout.ShardKey{Segment: layout.SegmentID(report.GetShard().GetSegment()), Shard: layout.ShardIndex(report.GetShard().GetShard())}
		kind := errs.Kind(report.GetKind())
		if s.reports.note(shard, kind) {
			s.log.Warn("bad shard reported", "segment", shard.Segment, "shard", shard.Shard,
				"device", report.GetShard().GetDevice(), "err", kind.String()+": "+report.GetDetail())
		}
	}
	return &pb.ReportShardsReply{}, s.markReported(ctx, r.GetReports())
}
