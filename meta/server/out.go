package server

import (
	"slices"

	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// Conversions of the state to replies.

func geometryOut(g layout.Geometry) *pb.Geometry {
	return &pb.Geometry{K: uint32(g.K), M: uint32(g.M)}
}

// volumeState gives a volume's state in one word.
func volumeState(v *state.Volume) string {
	switch {
	case v.Removed:
		return "removed"
	case v.Undecided != "":
		return "undecided"
	case v.Holder != 0 && v.Closed:
		return "open"
	case v.Holder != 0 || v.Unsealed > 0 || !v.Closed:
		return "recovering"
	}
	return "idle"
}

func volumeOut(view *state.View, v *state.Volume) *pb.Volume {
	out := &pb.Volume{
		Id: uint64(v.ID), Tenant: v.Tenant, Name: v.Name, SizeBytes: v.SizeBytes, Geometry: geometryOut(v.Geometry),
		Class: uint32(v.Class), Epoch: uint64(v.Epoch), HolderSession: uint64(v.Holder),
		Segments: v.Segments, StoredBytes: view.StoredByFamily(v), ReservedBytes: v.ReservedBytes,
		LiveBytes: v.Root.Live * layout.BlockSize, InheritedBytes: (v.Root.Live - min(v.Root.Live, v.Root.Own)) * layout.BlockSize,
		GarbageBytes: v.Garbage(), FrozenSeq: uint64(view.FrozenSeq(v.ID)), Flattening: v.Flattening,
		RootNumber: uint64(v.Root.Number), Covers: uint64(v.Root.Covers), Unsealed: v.Unsealed,
		State: volumeState(v), Undecided: v.Undecided, RemovedAtUnix: v.RemovedAtUnix,
		Snapshots: uint64(view.CountSnapshots(v.FamilyID())), Origin: uint64(v.Origin),
	}
	if origin, ok := view.SnapshotByID(v.Origin); ok {
		of, _ := view.Volume(origin.Volume)
		out.OriginName = layout.VolumeName{Tenant: of.Tenant, Volume: of.Name, Snapshot: origin.Name}.String()
	}
	if c, ok := view.ClassByNumber(v.Class); ok {
		out.ClassName = c.Name
	}
	for _, l := range v.Losses {
		out.Losses = append(out.Losses, &pb.Loss{Epoch: uint64(l.Epoch), Cut: uint64(l.Cut), After: uint64(l.After), By: l.By, AtUnix: l.AtUnix})
	}
	if holder, ok := view.Session(v.Holder); ok {
		out.Holder = holder.Owner
	}
	return out
}

func sealOut(s *state.Seal) *pb.Seal {
	out := &pb.Seal{Segment: uint64(s.Segment), FirstSeq: uint64(s.First), LastSeq: uint64(s.Last), Count: s.Count}
	for i := range s.Shards {
		out.Shards = append(out.Shards, shardSealOut(&s.Shards[i]))
	}
	return out
}

func shardSealOut(s *state.ShardSeal) *pb.ShardSeal {
	return &pb.ShardSeal{Count: s.Count, Length: uint64(s.Length), Digest: slices.Clone(s.Digest[:])}
}

// segmentOut gives a segment. Its seal is given once it is sealed; the list that
// a root attached to an unsealed map segment is not.
func segmentOut(view *state.View, s *state.Segment) *pb.Segment {
	out := &pb.Segment{
		Id: uint64(s.ID), Volume: uint64(s.Volume), Epoch: uint64(s.Epoch), Geometry: geometryOut(s.Geometry),
		ShardLength: uint64(s.ShardLength), Map: s.Map, Finalized: s.State == state.Finalized,
	}
	for _, p := range s.Placements {
		d, _ := view.Device(p.Device)
		out.Placements = append(out.Placements, &pb.Placement{Device: uint64(p.Device), Server: uint64(d.Server), Generation: uint32(p.Generation)})
	}
	if s.State == state.Sealed || s.State == state.Finalized {
		out.Seal = sealOut(&s.Seal)
	}
	return out
}

// located gives segments, and the addresses of the servers that hold them.
func (s *Server) located(view *state.View, segments []state.Segment) ([]*pb.Segment, []*pb.ServerAddress) {
	var list []*pb.Segment
	seen := map[uint64]bool{}
	var servers []*pb.ServerAddress
	for i := range segments {
		seg := segmentOut(view, &segments[i])
		list = append(list, seg)
		for _, p := range seg.Placements {
			if seen[p.Server] {
				continue
			}
			seen[p.Server] = true
			if srv, ok := view.Server(serverID(p.Server)); ok {
				servers = append(servers, s.addressOut(&srv))
			}
		}
	}
	return list, servers
}

func (s *Server) addressOut(srv *state.Server) *pb.ServerAddress {
	return &pb.ServerAddress{
		Server: uint64(srv.ID), DataAddress: srv.DataAddress, ControlAddress: srv.ControlAddress,
		Up: srv.Up && s.alive.up(srv.ID),
	}
}

func (s *Server) openOut(view *state.View, o *state.OpenVolume) *pb.OpenVolumeReply {
	out := &pb.OpenVolumeReply{Volume: volumeOut(view, &o.Volume), Root: rootOut(&o.Volume.Root)}
	for _, c := range o.Cuts {
		out.Cuts = append(out.Cuts, &pb.Cut{BeforeEpoch: uint64(c.Before), Seq: uint64(c.Seq)})
	}
	all := o.Segments
	for _, a := range o.Ancestors {
		all = append(all[:len(all):len(all)], a.Segments...)
	}
	list, servers := s.located(view, all)
	out.Servers, out.Segments = servers, list[:len(o.Segments)]
	list = list[len(o.Segments):]
	for _, a := range o.Ancestors {
		out.Ancestors = append(out.Ancestors, &pb.Ancestor{Volume: uint64(a.Volume), Limit: uint64(a.Limit), Segments: list[:len(a.Segments)]})
		list = list[len(a.Segments):]
	}
	return out
}

func rootOut(r *state.Root) *pb.Root {
	return &pb.Root{Number: uint64(r.Number), Covers: uint64(r.Covers), Page: r.Page, LiveBlocks: r.Live, OwnBlocks: r.Own, MapBlocks: r.Pages}
}

func deviceOut(d *state.Device) *pb.Device {
	return &pb.Device{
		Id: uint64(d.ID), Uuid: slices.Clone(d.UUID[:]), TotalBytes: d.Total, UsedBytes: d.Used, ReservedBytes: d.Reserved,
		Incarnation: uint64(d.Incarnation), Path: d.Path, State: d.State.String(),
	}
}

func (s *Server) serverOut(view *state.View, srv *state.Server) *pb.Server {
	out := &pb.Server{
		Id: uint64(srv.ID), Uuid: slices.Clone(srv.UUID[:]), DataAddress: srv.DataAddress, ControlAddress: srv.ControlAddress,
		Domain: srv.Domain, Version: srv.Version, State: "down",
	}
	if srv.Up && s.alive.up(srv.ID) {
		out.State = "up"
	}
	if silent := s.alive.silent(srv.ID); silent < forever {
		out.SilentMs = uint64(silent.Milliseconds())
	}
	for _, id := range srv.Devices {
		d, ok := view.Device(id)
		if !ok {
			continue
		}
		said, ok := s.alive.figures(id)
		if ok {
			d.Total, d.Used, d.Reserved = said.Total, said.Used, said.Reserved
		}
		dev := deviceOut(&d)
		if dev.Note = s.alive.rival(id); dev.Note == "" && d.State == state.DeviceLimping {
			_, dev.Note = s.control.limps(&d)
		}
		dev.OtherBytes, dev.Capacity = said.other, s.qos.capacityOf(id)
		out.Devices = append(out.Devices, dev)
	}
	return out
}
