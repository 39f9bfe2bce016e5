package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// ChangeDevices implements pb.MetaServer. One change is judged and carried out
// after the other: two that data survives alone may together be one too many.
func (s *Server) ChangeDevices(ctx context.Context, r *pb.ChangeDevicesRequest) (*pb.ChangeDevicesReply, error) {
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return nil, errs.As(ctx.Err(), errs.Deadline, "change devices: another change is under way")
	}
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := devicesIn(view, r)
	if err != nil {
		return nil, err
	}
	cmd, err := s.judgedChange(view, r, ids)
	if err != nil {
		return nil, err
	}
	if err := s.do(ctx, cmd); err != nil {
		return nil, err
	}
	reply := &pb.ChangeDevicesReply{}
	for _, id := range ids {
		reply.Devices = append(reply.Devices, uint64(id))
	}
	return reply, nil
}

// judgedChange gives the command for what is asked, unless it would endanger data.
func (s *Server) judgedChange(view *state.View, r *pb.ChangeDevicesRequest, ids []deviceID) (cmd state.ChangeDevices, err error) {
	cmd = state.ChangeDevices{ID: state.CommandID(r.GetCommand()), Devices: ids}
	switch r.GetChange() {
	case pb.ChangeDevicesRequest_DRAIN:
		cmd.Change, err = state.DrainDevice, s.mayDrain(view, ids)
	case pb.ChangeDevicesRequest_UNDRAIN:
		cmd.Change = state.UndrainDevice
	case pb.ChangeDevicesRequest_REMOVE:
		cmd.Change, err = state.RemoveDevice, s.mayRemove(view, ids)
	default:
		err = errs.New(errs.InvalidArgument, "change devices", "change %d is not known", r.GetChange())
	}
	return cmd, err
}

// devicesIn gives the devices that a request names: by themselves, or by their server.
func devicesIn(view *state.View, r *pb.ChangeDevicesRequest) (ids []deviceID, err error) {
	for _, id := range r.GetDevices() {
		ids = append(ids, deviceID(id))
	}
	if id := serverID(r.GetServer()); id != 0 {
		srv, ok := view.Server(id)
		if !ok {
			return nil, errs.New(errs.NotFound, "change devices", "server %d is not known", id).WithHint("`strake server ls` lists them")
		}
		ids = append(ids, srv.Devices...)
	}
	for _, id := range ids {
		if _, ok := view.Device(id); !ok {
			return nil, errs.New(errs.NotFound, "change devices", "device %d is not known", id).WithHint("`strake server ls` lists them")
		}
	}
	return ids, nil
}

// mayDrain refuses to drain devices whose shards would have no other place. What
// still has to leave devices that drain already takes room too.
func (s *Server) mayDrain(view *state.View, ids []deviceID) error {
	const op = "drain"
	left, free, used := map[serverID]bool{}, uint64(0), uint64(0)
	for _, d := range view.Devices() {
		if said, ok := s.alive.figures(d.ID); ok {
			d.Total, d.Used, d.Reserved = said.Total, said.Used, said.Reserved+said.other
		}
		if slices.Contains(ids, d.ID) || d.State == state.DeviceDraining {
			used += d.Used
		} else if srv, _ := view.Server(d.Server); (d.State == state.DeviceUp || d.State == state.DeviceLimping) && srv.Up && s.alive.up(srv.ID) {
			left[d.Server] = true
			free += d.Total - min(d.Total, d.Used+d.Reserved+layout.ForUpkeep.Kept(d.Total))
		}
	}
	short := volumesOn(view, ids, func(seg *state.Segment) bool { return seg.Geometry.Shards() > len(left) })
	if len(short) > 0 {
		return errs.New(errs.Frozen, op, "%d servers would be left to take shards, too few for %s", len(left), names(short)).
			WithHint("add servers first")
	}
	if used > free {
		return errs.New(errs.NoSpace, op, "%d bytes must move and the other devices have room for %d", used, free).WithHint("add devices first, or delete data")
	}
	return nil
}

// mayRemove refuses to give up devices without which a segment has too few shards.
func (s *Server) mayRemove(view *state.View, ids []deviceID) error {
	lost := volumesOn(view, ids, func(seg *state.Segment) bool {
		missing := 0
		for i, p := range seg.Placements {
			d, _ := view.Device(p.Device)
			srv, _ := view.Server(d.Server)
			gone := d.State == state.DeviceDead || d.State == state.DeviceDown || !srv.Up || !s.alive.up(srv.ID)
			if gone || slices.Contains(ids, d.ID) || seg.Lost.Has(layout.ShardIndex(i)) {
				missing++
			}
		}
		return missing > int(seg.Geometry.M)
	})
	if len(lost) > 0 {
		return errs.New(errs.Conflict, "remove devices", "data of %s would be lost", names(lost)).
			WithHint("bring the servers back that are down, wait for the rebuild (strake rebuild status), or drain the devices instead")
	}
	return nil
}

// volumesOn names the volumes with a segment on the devices that matters.
func volumesOn(view *state.View, ids []deviceID, matters func(*state.Segment) bool) (list []string) {
	seen := map[volumeID]bool{}
	for _, id := range ids {
		for after, more := layout.SegmentID(0), true; more; {
			var page []state.Segment
			page, more = view.SegmentsOnDevice(id, after, maxPage)
			for i := range page {
				seg := &page[i]
				after = seg.ID
				if seen[seg.Volume] || !view.Needed(seg) || !matters(seg) {
					continue
				}
				seen[seg.Volume] = true
				v, _ := view.Volume(seg.Volume)
				list = append(list, layout.VolumeName{Tenant: v.Tenant, Volume: v.Name}.String())
			}
		}
	}
	return list
}

// names shortens a list of volumes.
func names(list []string) string {
	const most = 5
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("volumes %s and %d more", strings.Join(list[:most], ", "), more)
	}
	return "volumes " + strings.Join(list, ", ")
}

// RemoveServer implements pb.MetaServer.
func (s *Server) RemoveServer(ctx context.Context, r *pb.RemoveServerRequest) (*pb.RemoveServerReply, error) {
	return &pb.RemoveServerReply{}, s.do(ctx, state.RemoveServer{Server: serverID(r.GetServer())})
}
