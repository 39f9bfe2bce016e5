package server

import (
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
	"strake/internal/telemetry"
	"strake/proto/pb"
)

// telemetry fills in what a status says beside the devices' fill.
func (s *Server) telemetry(reply *pb.ChunkStatusReply) {
	for i, d := range s.Stats() {
		out := reply.Devices[i]
		out.Width, out.Running, out.Waiting = uint32(d.Width), uint32(d.Running), uint32(d.Waiting)
		for j := range d.Flows {
			reply.Classes = append(reply.Classes, classStatus(d.Device, &d.Flows[j]))
		}
	}
	s.EachVolume(func(id layout.VolumeID, c *VolumeCounters) {
		times := c.Times()
		reply.Volumes = append(reply.Volumes, &pb.VolumeStatus{Times: times.Counts[:], TimeNs: uint64(times.Sum), Volume: uint64(id), Reads: c.Reads.Load(), Writes: c.Writes.Load(),
			ReadBytes: c.ReadBytes.Load(), WroteBytes: c.WroteBytes.Load()})
	})
	for _, o := range s.SLOs(time.Now()) {
		reply.Slos = append(reply.Slos, &pb.SloStatus{Class: uint32(o.Class), Judged_5M: o.Short.Judged, Late_5M: o.Short.Late,
			Judged_1H: o.Hour.Judged, Late_1H: o.Hour.Late, Judged: o.All.Judged, Late: o.All.Late})
	}
	net := telemetry.ReadNetwork()
	reply.NetIn, reply.NetOut, reply.LinkBytesPerS = net.In, net.Out, net.Link
	reply.GcPauseNs, reply.Allocations = telemetry.GCPauses(), telemetry.Allocations()
	reply.DataCalls, reply.CopiedBytes = s.Counters.Calls.Load(), s.Counters.CopiedBytes.Load()
	for _, d := range s.devices.all {
		reply.CopiedBytes += d.Store.Counters().CopiedBytes
	}
	for i := range mclock.Buckets {
		reply.BucketNs = append(reply.BucketNs, uint64(mclock.BucketEnd(i)))
	}
}

func classStatus(device layout.DeviceID, f *mclock.FlowStats) *pb.ClassStatus {
	return &pb.ClassStatus{Device: uint64(device), Class: uint32(f.Class), Tenant: uint64(f.Tenant), Reads: f.Reads, Writes: f.Writes,
		ReadBytes: f.ReadBytes, WroteBytes: f.WroteBytes, Reserved: f.Reserved, Late: f.Late, Refused: f.Refused, Gated: f.Gated, GateNs: uint64(f.GateTime),
		ThrottledNs: uint64(f.Throttled), DeviceNs: uint64(f.DeviceTime), Waiting: uint64(f.Waiting + f.AtGate), Running: uint64(f.Running),
		Queue: f.Queue.Counts[:], Service: f.Service.Counts[:], QueueNs: uint64(f.Queue.Sum), ServiceNs: uint64(f.Service.Sum),
		ReservedBytesPerS: f.Params.Reservation.Bytes, ReservedOpsPerS: f.Params.Reservation.Ops,
		LimitBytesPerS: f.Params.Limit.Bytes, LimitOpsPerS: f.Params.Limit.Ops}
}
