package server

import (
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// RegisterServer implements pb.MetaServer. It is idempotent by the UUIDs.
func (s *Server) RegisterServer(ctx context.Context, r *pb.RegisterServerRequest) (*pb.RegisterServerReply, error) {
	cmd, err := registerIn(r)
	if err != nil {
		return nil, err
	}
	if err := s.checkAlone(ctx, &cmd); err != nil {
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

// probeCall bounds the question whether a server still runs at its old address.
const probeCall = time.Second

// checkAlone refuses a server that still runs at another address: whoever comes
// runs on a copy of its devices. A process that is gone, or another server's that
// has its port now, does not stand in the way.
func (s *Server) checkAlone(ctx context.Context, c *state.RegisterServer) error {
	view := s.machine.View()
	srv, ok := view.ServerByUUID(c.UUID)
	if !ok || !srv.Up || srv.DataAddress == c.DataAddress {
		return nil
	}
	chunk, err := s.chunk(view, srv.ID)
	if err != nil {
		return nil // no address to ask: nobody is there
	}
	ctx, cancel := context.WithTimeout(ctx, probeCall)
	defer cancel()
	r, err := chunk.ChunkStatus(ctx, &pb.ChunkStatusRequest{})
	if err != nil || serverID(r.GetServer()) != srv.ID || !servesAny(r.GetDevices()) {
		return nil
	}
	return errs.New(errs.Busy, "register server", "server %d (%v) is up at %s and can't be at %s too", srv.ID, c.UUID, srv.DataAddress, c.DataAddress).
		WithHint("one of the two runs on a copied disk: stop that one and empty its devices; a server that moves is stopped at its old address first")
}

// servesAny tells whether a device still answers.
func servesAny(devices []*pb.DeviceStatus) bool {
	return slices.ContainsFunc(devices, func(d *pb.DeviceStatus) bool { return d.GetState() != state.DeviceDown.String() })
}

// Heartbeat implements pb.MetaServer. It writes nothing: heartbeats are the
// leader's soft state, and the controllers record what changed much. A device
// whose incarnation is behind the registered one is refused with Conflict: a
// later process registered it, so this one runs on a copy, or was thought gone.
// Its heartbeat is no sign of the registered server's life.
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
	reply := &pb.HeartbeatReply{IntervalMs: uint32(s.opts.Timing.ServerSilence.Milliseconds() / heartbeatsPerSilence)}
	for i, u := range updates {
		d, ok := view.Device(u.Device)
		if !ok || d.Server != srv.ID {
			return nil, errs.New(errs.InvalidArgument, "heartbeat", "device %d is not one of server %d", u.Device, srv.ID)
		}
		if said := r.GetDevices()[i].GetIncarnation(); said < uint64(d.Incarnation) {
			reply.Refused = append(reply.Refused, s.refuse(&srv, &d, said, r.GetDataAddress()))
		}
		if d.State == state.DeviceDead && d.Wish != state.WishRemoved && u.State == state.DeviceUp {
			return nil, errs.New(errs.NotFound, "heartbeat", "device %d was given up while it was not heard", d.ID).WithHint("register again")
		}
	}
	if len(reply.Refused) > 0 {
		return reply, nil
	}
	s.heard(srv.ID, updates)
	if !srv.Up {
		s.wake()
	}
	s.measured(&srv, r)
	reply.Probe = s.suspected(&srv)
	s.qosHeartbeat(view, &srv, r, reply)
	return reply, nil
}

// refuse turns a device's older life away.
func (s *Server) refuse(srv *state.Server, d *state.Device, said uint64, address string) *pb.RefusedDevice {
	err := errs.New(errs.Conflict, "heartbeat", "device %d in incarnation %d at %s was replaced by incarnation %d at %s", d.ID, said, address, d.Incarnation, srv.DataAddress).
		WithHint("one of the two is a copied disk; stop both, keep the one that wrote last, and empty the other")
	if s.alive.refuse(d.ID, err.Error()) {
		s.log.Warn("older life of a device refused", "server", srv.ID, "device", d.ID, "err", err)
		s.journal.add("device-refused", err.Error())
	}
	return &pb.RefusedDevice{Device: uint64(d.ID), Kind: uint32(err.Kind), Message: err.Error(), Hint: err.Hint}
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
	s.blamed(s.machine.View(), sessionID(r.GetSession()), r.GetDevices())
	return &pb.ReportShardsReply{}, s.markReported(ctx, r.GetReports())
}
