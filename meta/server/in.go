package server

import (
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// Conversions of requests to commands. They check only what a smaller type
// can't hold; the rest is the state machine's to refuse.

func geometryIn(g *pb.Geometry) (layout.Geometry, error) {
	if g.GetK() > layout.MaxData || g.GetM() > layout.MaxParity {
		return layout.Geometry{}, errs.New(errs.InvalidArgument, "", "geometry %d+%d: at most %d+%d", g.GetK(), g.GetM(), layout.MaxData, layout.MaxParity)
	}
	return layout.Geometry{K: uint8(g.GetK()), M: uint8(g.GetM())}, nil
}

func uuidIn(b []byte) (layout.UUID, error) {
	var u layout.UUID
	if len(b) != len(u) {
		return u, errs.New(errs.InvalidArgument, "", "a UUID of %d bytes, not %d", len(b), len(u))
	}
	copy(u[:], b)
	return u, nil
}

func classIn(c uint32) (layout.Class, error) {
	if c > 255 {
		return 0, errs.New(errs.InvalidArgument, "", "class %d does not exist", c)
	}
	return layout.Class(c), nil
}

func refIn(tenant, name string, id uint64) state.VolumeRef {
	return state.VolumeRef{ID: layout.VolumeID(id), Tenant: tenant, Name: name}
}

func segmentIDsIn(ids []uint64) []layout.SegmentID {
	list := make([]layout.SegmentID, len(ids))
	for i, id := range ids {
		list[i] = layout.SegmentID(id)
	}
	return list
}

func sealsIn(seals []*pb.Seal) ([]state.Seal, error) {
	list := make([]state.Seal, len(seals))
	for i, p := range seals {
		s := state.Seal{
			Segment: layout.SegmentID(p.GetSegment()), First: layout.Seq(p.GetFirstSeq()), Last: layout.Seq(p.GetLastSeq()),
			Count: p.GetCount(),
		}
		for _, sh := range p.GetShards() {
			var digest stripe.Digest
			if len(sh.GetDigest()) != 0 && len(sh.GetDigest()) != len(digest) {
				return nil, errs.New(errs.InvalidArgument, "", "segment %d: a digest of %d bytes, not %d", s.Segment, len(sh.GetDigest()), len(digest))
			}
			copy(digest[:], sh.GetDigest())
			if sh.GetLength() > layout.MaxShardLength {
				return nil, errs.New(errs.InvalidArgument, "", "segment %d: a shard of %d bytes, at most %d", s.Segment, sh.GetLength(), layout.MaxShardLength)
			}
			s.Shards = append(s.Shards, state.ShardSeal{Count: sh.GetCount(), Length: layout.ShardOffset(sh.GetLength()), Digest: digest})
		}
		list[i] = s
	}
	return list, nil
}

func rootIn(r *pb.Root) state.Root {
	return state.Root{Number: layout.RootNumber(r.GetNumber()), Covers: layout.Seq(r.GetCovers()), Page: r.GetPage(),
		Live: r.GetLiveBlocks(), Own: r.GetOwnBlocks(), Pages: r.GetMapBlocks()}
}

// stateIn reads a device's state; empty means up.
func stateIn(name string) (state.DeviceState, error) {
	if name == "" {
		return state.DeviceUp, nil
	}
	for s := state.DeviceUp; s <= state.DeviceDead; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, errs.New(errs.InvalidArgument, "", "device state %q is not known", name)
}

func registerIn(r *pb.RegisterServerRequest) (state.RegisterServer, error) {
	uuid, err := uuidIn(r.GetUuid())
	if err != nil {
		return state.RegisterServer{}, err
	}
	c := state.RegisterServer{
		Cell: layout.CellID(r.GetCell()), UUID: uuid, DataAddress: r.GetDataAddress(), ControlAddress: r.GetControlAddress(),
		Domain: r.GetDomain(), Version: r.GetVersion(),
	}
	for _, d := range r.GetDevices() {
		uuid, err := uuidIn(d.GetUuid())
		if err != nil {
			return state.RegisterServer{}, err
		}
		st, err := stateIn(d.GetState())
		if err != nil {
			return state.RegisterServer{}, err
		}
		c.Devices = append(c.Devices, state.DeviceReport{
			UUID: uuid, Path: d.GetPath(), Total: d.GetTotalBytes(), Used: d.GetUsedBytes(), Reserved: d.GetReservedBytes(),
			Incarnation: layout.Incarnation(d.GetIncarnation()), State: st,
		})
	}
	return c, nil
}

func updatesIn(devices []*pb.Device) ([]saying, error) {
	var list []saying
	for _, d := range devices {
		st, err := stateIn(d.GetState())
		if err != nil {
			return nil, err
		}
		list = append(list, saying{state.DeviceUpdate{
			Device: layout.DeviceID(d.GetId()), Total: d.GetTotalBytes(), Used: d.GetUsedBytes(), Reserved: d.GetReservedBytes(), State: st,
		}, d.GetOtherBytes()})
	}
	return list, nil
}
