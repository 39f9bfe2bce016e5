package server

import (
	"context"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/placement"
	"strake/meta/state"
	"strake/proto/pb"
)

// OpenSession implements pb.MetaServer.
func (s *Server) OpenSession(ctx context.Context, r *pb.OpenSessionRequest) (*pb.OpenSessionReply, error) {
	result, err := s.propose(ctx, state.OpenSession{ID: state.CommandID(r.GetCommand()), Owner: r.GetOwner(), Janitor: r.GetJanitor()})
	if err != nil {
		return nil, err
	}
	return &pb.OpenSessionReply{
		Session: uint64(result.Session), TtlMs: uint32(s.opts.Timing.SessionTTL.Milliseconds()),
		Cell: uint64(s.machine.View().Cell().ID),
	}, nil
}

// KeepSession implements pb.MetaServer.
func (s *Server) KeepSession(ctx context.Context, r *pb.KeepSessionRequest) (*pb.KeepSessionReply, error) {
	wait := time.Duration(r.GetWaitMs()) * time.Millisecond
	id := sessionID(r.GetSession())
	events, err := s.sessions.keep(ctx, id, r.GetSeenEvent(), wait)
	if _, ok := s.machine.View().Session(id); err == nil && !ok { // its end was applied, and is about to be told here
		err = sessionEnded(id)
	}
	return &pb.KeepSessionReply{Events: events}, err
}

// CloseSession implements pb.MetaServer.
func (s *Server) CloseSession(ctx context.Context, r *pb.CloseSessionRequest) (*pb.CloseSessionReply, error) {
	_, err := s.propose(ctx, state.CloseSession{Session: sessionID(r.GetSession())})
	return &pb.CloseSessionReply{}, err
}

// OpenVolume implements pb.MetaServer.
func (s *Server) OpenVolume(ctx context.Context, r *pb.OpenVolumeRequest) (*pb.OpenVolumeReply, error) {
	_, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	var open state.OpenVolume
	view := s.readable(ctx, func(v *state.View) []state.Segment {
		open, err = v.Open(refIn(r.GetTenant(), r.GetName(), 0))
		return open.Segments
	})
	if err != nil {
		return nil, err
	}
	return s.openOut(view, &open), nil
}

// AcquireLease implements pb.MetaServer. What it gives is the volume as of the
// command itself, so a repeat after a lost reply gives the same.
func (s *Server) AcquireLease(ctx context.Context, r *pb.AcquireLeaseRequest) (*pb.AcquireLeaseReply, error) {
	result, err := s.propose(ctx, state.AcquireLease{
		ID: state.CommandID(r.GetCommand()), Session: sessionID(r.GetSession()),
		Volume: refIn(r.GetTenant(), r.GetName(), r.GetVolume()), Force: r.GetForce(),
	})
	if err != nil {
		return nil, err
	}
	view := s.readable(ctx, func(*state.View) []state.Segment { return result.Open.Segments })
	return &pb.AcquireLeaseReply{
		Epoch: uint64(result.Epoch), Open: s.openOut(view, result.Open), Clean: result.Open.Clean,
		LastSeq: uint64(result.Open.LastSeq), NextShardLength: uint64(placement.ShardLength(result.Open.Volume.Segments, view.Cell().ShardLength, 0)),
	}, nil
}

// ReleaseLease implements pb.MetaServer.
func (s *Server) ReleaseLease(ctx context.Context, r *pb.ReleaseLeaseRequest) (*pb.ReleaseLeaseReply, error) {
	_, err := s.propose(ctx, state.ReleaseLease{
		ID: state.CommandID(r.GetCommand()), Session: sessionID(r.GetSession()), Volume: layout.VolumeID(r.GetVolume()),
		Epoch: layout.Epoch(r.GetEpoch()), LastSeq: layout.Seq(r.GetLastSeq()), Abandon: r.GetAbandon(),
	})
	return &pb.ReleaseLeaseReply{}, err
}

// SealSegments implements pb.MetaServer.
func (s *Server) SealSegments(ctx context.Context, r *pb.SealSegmentsRequest) (*pb.SealSegmentsReply, error) {
	seals, err := sealsIn(r.GetSeals())
	if err != nil {
		return nil, err
	}
	_, err = s.propose(ctx, state.SealSegments{
		ID: state.CommandID(r.GetCommand()), Volume: layout.VolumeID(r.GetVolume()), Epoch: layout.Epoch(r.GetEpoch()), Seals: seals,
	})
	return &pb.SealSegmentsReply{}, err
}

// CloseEpoch implements pb.MetaServer.
func (s *Server) CloseEpoch(ctx context.Context, r *pb.CloseEpochRequest) (*pb.CloseEpochReply, error) {
	seals, err := sealsIn(r.GetSeals())
	if err != nil {
		return nil, err
	}
	_, err = s.propose(ctx, state.CloseEpoch{
		ID: state.CommandID(r.GetCommand()), Volume: layout.VolumeID(r.GetVolume()), Epoch: layout.Epoch(r.GetEpoch()),
		Cut: layout.Seq(r.GetCut()), Seals: seals, Undecided: r.GetUndecided(),
		AcceptLoss: r.GetAcceptLoss(), AcceptAfter: layout.Seq(r.GetAcceptAfter()), AtUnix: acceptedAt(r.GetAcceptLoss()),
	})
	return &pb.CloseEpochReply{}, err
}

// acceptedAt dates an accepted loss, and nothing else.
func acceptedAt(loss bool) uint64 {
	if !loss {
		return 0
	}
	return nowUnix()
}

// RecordRoot implements pb.MetaServer.
func (s *Server) RecordRoot(ctx context.Context, r *pb.RecordRootRequest) (*pb.RecordRootReply, error) {
	lists, err := sealsIn(r.GetMapLists())
	if err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, state.RecordRoot{
		ID: state.CommandID(r.GetCommand()), Volume: layout.VolumeID(r.GetVolume()), Epoch: layout.Epoch(r.GetEpoch()),
		Root: rootIn(r.GetRoot()), MapLists: lists,
		Flat: r.GetFlat(), Retired: segmentIDsIn(r.GetRetired()), RetiredMap: segmentIDsIn(r.GetRetiredMap()),
	})
	reply := &pb.RecordRootReply{}
	for _, id := range result.Segments {
		reply.Retired = append(reply.Retired, uint64(id))
	}
	return reply, err
}

// RequestMove implements pb.MetaServer. A move off a server that is down costs
// nothing: it is no guess any more.
func (s *Server) RequestMove(_ context.Context, r *pb.RequestMoveRequest) (*pb.RequestMoveReply, error) {
	view := s.machine.View()
	v, err := view.Resolve(state.VolumeRef{ID: layout.VolumeID(r.GetVolume())})
	if err != nil {
		return nil, err
	}
	if err := holds(&v, sessionID(r.GetSession()), layout.Epoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	srv, ok := view.Server(serverID(r.GetServer()))
	if !ok {
		return nil, errs.New(errs.NotFound, "request a move", "chunk server %d is not registered", r.GetServer())
	}
	if !srv.Up || !s.alive.present(srv.ID) {
		return &pb.RequestMoveReply{Granted: true}, nil
	}
	if retry := s.moves.take(v.ID, view); retry > 0 {
		return &pb.RequestMoveReply{RetryMs: uint32(retry.Milliseconds()) + 1}, nil
	}
	return &pb.RequestMoveReply{Granted: true}, nil
}
