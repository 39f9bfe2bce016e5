package server

import (
	"context"
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// CreateSnapshots implements pb.MetaServer. When a map root is recorded or the
// writer changes between a barrier and the command, it is asked again.
func (s *Server) CreateSnapshots(ctx context.Context, r *pb.CreateSnapshotsRequest) (*pb.CreateSnapshotsReply, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	op := "create snapshot"
	cmd := state.CreateSnapshots{ID: state.CommandID(r.GetCommand()), Tag: r.GetTag(), AtUnix: nowUnix()}
	for _, i := range r.GetItems() {
		cmd.Items = append(cmd.Items, state.SnapshotItem{Volume: refIn(i.GetTenant(), i.GetVolume(), 0), Name: i.GetName()})
	}
	for {
		cmd.Items = slices.Clone(cmd.Items)
		if err := s.askWriters(ctx, op, cmd.Items, cmd.Tag); err != nil {
			return nil, err
		}
		_, err := s.propose(ctx, cmd)
		if err == nil {
			break
		}
		if errs.KindOf(err) != errs.StaleEpoch || ctx.Err() != nil {
			return nil, err
		}
	}
	view, reply := s.machine.View(), &pb.CreateSnapshotsReply{}
	for _, i := range cmd.Items {
		f, err := view.FindSnapshot(i.Volume, i.Name)
		if err != nil {
			return nil, errs.Wrap(err, "look the new snapshot up")
		}
		reply.Snapshots = append(reply.Snapshots, snapshotOut(view, &f))
	}
	return reply, nil
}

// snapshotOut gives a snapshot with what its record tells.
func snapshotOut(view *state.View, f *state.Frozen) *pb.Snapshot {
	v, _ := view.Volume(f.Volume)
	return &pb.Snapshot{Id: uint64(f.ID), Volume: uint64(f.Volume), Tenant: v.Tenant, VolumeName: v.Name, Name: f.Name,
		Kind: f.Kind.String(), Seq: uint64(f.Seq), Epoch: uint64(f.Epoch), SizeBytes: f.SizeBytes, AtUnix: f.AtUnix,
		Holds: f.Holds, Digest: f.Digest, Blocks: f.Blocks, RootNumber: uint64(f.Root.Number), Covers: uint64(f.Root.Covers)}
}

// snapshotWhole adds what takes a look at the volume's segments.
func snapshotWhole(view *state.View, f *state.Frozen) *pb.Snapshot {
	out := snapshotOut(view, f)
	branches, read := view.StandOn(f.ID)
	for i := range branches {
		if !branches[i].Purged {
			out.Clones = append(out.Clones, layout.VolumeName{Tenant: branches[i].Tenant, Volume: branches[i].Name}.String())
		}
	}
	out.Open = read
	out.FreesBytes, out.CleanableBytes = view.Frees(f)
	return out
}

// ListSnapshots implements pb.MetaServer.
func (s *Server) ListSnapshots(ctx context.Context, r *pb.ListSnapshotsRequest) (*pb.ListSnapshotsReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	v, err := view.Resolve(refIn(r.GetTenant(), r.GetVolume(), 0))
	if err != nil {
		return nil, err
	}
	page, more := view.Snapshots(v.FamilyID(), layout.SnapshotID(r.GetAfter()), pageOf(r.GetMost()))
	reply := &pb.ListSnapshotsReply{More: more, Last: r.GetAfter()}
	for i := range page {
		reply.Last = uint64(page[i].ID)
		if !r.GetTags() || page[i].Kind == state.TagSnapshot {
			reply.Snapshots = append(reply.Snapshots, snapshotOut(view, &page[i]))
		}
	}
	return reply, nil
}

// GetSnapshot implements pb.MetaServer.
func (s *Server) GetSnapshot(ctx context.Context, r *pb.GetSnapshotRequest) (*pb.GetSnapshotReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	if len(r.GetDigest()) > 0 {
		f, ok := view.TagByDigest(r.GetTenant(), r.GetVolume(), r.GetDigest())
		if !ok || len(r.GetDigest()) != state.DigestBytes {
			return nil, errs.New(errs.NotFound, "look up tag", "no tag has the digest %x", r.GetDigest()).WithHint("`strake tag ls` lists them")
		}
		return &pb.GetSnapshotReply{Snapshot: snapshotOut(view, &f)}, nil
	}
	f, err := view.FindSnapshot(refIn(r.GetTenant(), r.GetVolume(), 0), r.GetName())
	if err != nil {
		return nil, err
	}
	return &pb.GetSnapshotReply{Snapshot: snapshotWhole(view, &f)}, nil
}

// RemoveSnapshot implements pb.MetaServer.
func (s *Server) RemoveSnapshot(ctx context.Context, r *pb.RemoveSnapshotRequest) (*pb.RemoveSnapshotReply, error) {
	volume := refIn(r.GetTenant(), r.GetVolume(), 0)
	was, unknown := s.machine.View().FindSnapshot(volume, r.GetName())
	_, err := s.propose(ctx, state.RemoveSnapshot{ID: state.CommandID(r.GetCommand()), Volume: volume, Name: r.GetName()})
	if err == nil && unknown == nil {
		s.control.removed(s.machine.View(), &was)
	}
	return &pb.RemoveSnapshotReply{}, err
}

// OpenSnapshot implements pb.MetaServer.
func (s *Server) OpenSnapshot(ctx context.Context, r *pb.OpenSnapshotRequest) (*pb.OpenSnapshotReply, error) {
	result, err := s.propose(ctx, state.PinSnapshot{Session: sessionID(r.GetSession()), Volume: refIn(r.GetTenant(), r.GetVolume(), 0),
		Name: r.GetName(), Snapshot: layout.SnapshotID(r.GetId())})
	if err != nil {
		return nil, err
	}
	view := s.machine.View()
	f, ok := view.SnapshotByID(result.Snapshot)
	open, err := view.OpenSnapshot(result.Snapshot)
	if err != nil || !ok {
		return nil, err
	}
	return &pb.OpenSnapshotReply{Open: s.openOut(view, &open), Snapshot: snapshotOut(view, &f)}, nil
}

// CloseSnapshot implements pb.MetaServer.
func (s *Server) CloseSnapshot(ctx context.Context, r *pb.CloseSnapshotRequest) (*pb.CloseSnapshotReply, error) {
	return &pb.CloseSnapshotReply{}, s.do(ctx, state.UnpinSnapshot{Session: sessionID(r.GetSession()), Snapshot: layout.SnapshotID(r.GetSnapshot())})
}

// FlattenVolume implements pb.MetaServer.
func (s *Server) FlattenVolume(ctx context.Context, r *pb.FlattenVolumeRequest) (*pb.FlattenVolumeReply, error) {
	result, err := s.propose(ctx, state.FlattenVolume{Volume: refIn(r.GetTenant(), r.GetName(), 0), Stop: r.GetStop()})
	if err != nil {
		return nil, err
	}
	v, err := s.volume(result.Volume)
	return &pb.FlattenVolumeReply{Volume: v}, err
}

// CloneVolume implements pb.MetaServer.
func (s *Server) CloneVolume(ctx context.Context, r *pb.CloneVolumeRequest) (*pb.CloneVolumeReply, error) {
	result, err := s.propose(ctx, state.CloneVolume{ID: state.CommandID(r.GetCommand()), Volume: refIn(r.GetTenant(), r.GetVolume(), 0),
		Snapshot: r.GetSnapshot(), Tenant: r.GetToTenant(), Name: r.GetToName()})
	if err != nil {
		return nil, err
	}
	v, err := s.volume(result.Volume)
	return &pb.CloneVolumeReply{Volume: v}, err
}

// RollbackVolume implements pb.MetaServer.
func (s *Server) RollbackVolume(ctx context.Context, r *pb.RollbackVolumeRequest) (*pb.RollbackVolumeReply, error) {
	result, err := s.propose(ctx, state.RollbackVolume{ID: state.CommandID(r.GetCommand()), Volume: refIn(r.GetTenant(), r.GetVolume(), 0),
		Snapshot: r.GetSnapshot(), AtUnix: nowUnix()})
	if err != nil {
		return nil, err
	}
	view := s.machine.View()
	v, err := s.volume(result.Volume)
	reply := &pb.RollbackVolumeReply{Volume: v}
	if kept, ok := view.SnapshotByID(result.Snapshot); ok {
		reply.Kept = snapshotOut(view, &kept)
	}
	return reply, err
}

// HoldTag implements pb.MetaServer.
func (s *Server) HoldTag(ctx context.Context, r *pb.HoldTagRequest) (*pb.HoldTagReply, error) {
	ref := refIn(r.GetTenant(), r.GetVolume(), 0)
	if err := s.do(ctx, state.HoldTag{Volume: ref, Name: r.GetName(), By: r.GetBy(), Release: r.GetRelease()}); err != nil {
		return nil, err
	}
	view := s.machine.View()
	f, err := view.FindSnapshot(ref, r.GetName())
	if err != nil {
		return nil, err
	}
	return &pb.HoldTagReply{Snapshot: snapshotOut(view, &f)}, nil
}

// MarkTagReady implements pb.MetaServer.
func (s *Server) MarkTagReady(ctx context.Context, r *pb.MarkTagReadyRequest) (*pb.MarkTagReadyReply, error) {
	return &pb.MarkTagReadyReply{}, s.do(ctx, state.MarkTagReady{Snapshot: layout.SnapshotID(r.GetSnapshot()), Digest: r.GetDigest(), Blocks: r.GetBlocks()})
}
