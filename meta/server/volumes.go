package server

import (
	"context"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

const maxPage = state.MaxPage

// volume gives one volume as it is now.
func (s *Server) volume(id layout.VolumeID) (*pb.Volume, error) {
	view := s.machine.View()
	v, ok := view.Volume(id)
	if !ok {
		return nil, errs.New(errs.NotFound, "", "volume %d is gone", id)
	}
	return volumeOut(view, &v), nil
}

// CreateVolume implements pb.MetaServer.
func (s *Server) CreateVolume(ctx context.Context, r *pb.CreateVolumeRequest) (*pb.CreateVolumeReply, error) {
	geometry, err := geometryIn(r.GetGeometry())
	if err != nil {
		return nil, err
	}
	class, err := classIn(r.GetClass())
	if err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, state.CreateVolume{
		ID: state.CommandID(r.GetCommand()), Tenant: r.GetTenant(), Name: r.GetName(), SizeBytes: r.GetSizeBytes(),
		Geometry: geometry, Class: class,
	})
	if err != nil {
		return nil, err
	}
	v, err := s.volume(result.Volume)
	return &pb.CreateVolumeReply{Volume: v}, err
}

// GetVolume implements pb.MetaServer.
func (s *Server) GetVolume(ctx context.Context, r *pb.GetVolumeRequest) (*pb.GetVolumeReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	v, err := view.Resolve(refIn(r.GetTenant(), r.GetName(), r.GetId()))
	if err != nil {
		return nil, err
	}
	out := volumeOut(view, &v)
	out.Pressed, out.OutlivedSeq = s.pressed(view), uint64(s.control.held(view, v.ID).Outlived)
	if w, waits := s.blocked.of(v.ID, time.Now()); waits {
		out.Blocked = w.text(view)
	}
	if r.GetId() == 0 { // it reads all of its segments; programs ask by id
		out.SnapshotBytes = view.HeldBySnapshots(&v)
	}
	return &pb.GetVolumeReply{Volume: out}, nil
}

// ListVolumes implements pb.MetaServer.
func (s *Server) ListVolumes(ctx context.Context, r *pb.ListVolumesRequest) (*pb.ListVolumesReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	list := view.Volumes
	if r.GetRemoved() {
		list = view.RemovedVolumes
	}
	page, more := list(r.GetTenant(), r.GetAfter(), pageOf(r.GetMost()))
	reply := &pb.ListVolumesReply{More: more}
	for i := range page {
		reply.Volumes = append(reply.Volumes, volumeOut(view, &page[i]))
	}
	return reply, nil
}

// pageOf bounds a page that a caller asked for.
func pageOf(most uint32) int {
	if most == 0 || most > maxPage {
		return maxPage
	}
	return int(most)
}

// ResizeVolume implements pb.MetaServer.
func (s *Server) ResizeVolume(ctx context.Context, r *pb.ResizeVolumeRequest) (*pb.ResizeVolumeReply, error) {
	result, err := s.propose(ctx, state.ResizeVolume{
		ID: state.CommandID(r.GetCommand()), Volume: refIn(r.GetTenant(), r.GetName(), 0),
		SizeBytes: r.GetSizeBytes(), Shrink: r.GetShrink(), Session: sessionID(r.GetSession()), Epoch: layout.Epoch(r.GetEpoch()),
	})
	if err != nil {
		return nil, err
	}
	v, err := s.volume(result.Volume)
	return &pb.ResizeVolumeReply{Volume: v}, err
}

// RemoveVolume implements pb.MetaServer.
func (s *Server) RemoveVolume(ctx context.Context, r *pb.RemoveVolumeRequest) (*pb.RemoveVolumeReply, error) {
	_, err := s.propose(ctx, state.RemoveVolume{
		ID: state.CommandID(r.GetCommand()), Volume: refIn(r.GetTenant(), r.GetName(), r.GetId()),
		Now: r.GetNow(), AtUnix: nowUnix(),
	})
	return &pb.RemoveVolumeReply{}, err
}

// UndeleteVolume implements pb.MetaServer.
func (s *Server) UndeleteVolume(ctx context.Context, r *pb.UndeleteVolumeRequest) (*pb.UndeleteVolumeReply, error) {
	result, err := s.propose(ctx, state.UndeleteVolume{
		ID: state.CommandID(r.GetCommand()), Volume: refIn(r.GetTenant(), r.GetName(), r.GetId()),
	})
	if err != nil {
		return nil, err
	}
	v, err := s.volume(result.Volume)
	return &pb.UndeleteVolumeReply{Volume: v}, err
}
