package client

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
	"strake/proto/pb"
)

const (
	figuresTimeout = 2 * time.Second // of one server's answer
	figuresAtOnce  = 64
)

// ServerFigures are what one chunk server has counted since its start.
type ServerFigures struct {
	Server    ServerInfo
	Err       error         // why it did not answer; the rest is empty then
	RoundTrip time.Duration // of the question
	At        time.Time     // of the answer
	Devices   []DeviceFigures
	Classes   []ClassFigures
	Volumes   []VolumeFigures
	SLOs      []SLOFigures

	NetworkIn, NetworkOut, Link uint64        // bytes; Link a second, 0: unknown
	GCPauses                    time.Duration // together
	BucketEnds                  []time.Duration
}

// DeviceFigures are a device's scheduler's at this moment.
type DeviceFigures struct {
	Device                  uint64
	Width, Running, Waiting int
}

// ClassFigures are what a tenant's work in a class got of a device.
type ClassFigures struct {
	Device, Tenant         uint64
	Class                  uint32
	Reads, Writes          uint64
	ReadBytes, WroteBytes  uint64
	Reserved               uint64 // pieces of work served by reservation
	Late, Refused          uint64
	Gated                  uint64        // writes that waited before their payload was read
	GateTime               time.Duration // they did, in all
	Throttled, DeviceTime  time.Duration
	Waiting, Running       int
	Queue, Service         []uint64 // histograms, see BucketEnds
	QueueTime, ServiceTime time.Duration
	Reservation, Limit     Rate // the device's part
}

// VolumeFigures are a volume's requests that succeeded; 0 stands for volumes beyond
// the server's bound.
type VolumeFigures struct {
	Volume                               uint64
	Reads, Writes, ReadBytes, WroteBytes uint64
	Times                                []uint64 // histogram from receipt to reply, flushes too; see BucketEnds
}

// SLOFigures count requests that a class's objective is for, and those that took
// longer.
type SLOFigures struct {
	Class            uint32
	Judged5m, Late5m uint64
	Judged1h, Late1h uint64
}

// Figures asks every chunk server at once. One that does not answer is in the
// result, with the reason.
func (c *Cell) Figures(ctx context.Context) ([]ServerFigures, error) {
	servers, err := c.Servers(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]ServerFigures, len(servers))
	var group errgroup.Group
	group.SetLimit(figuresAtOnce)
	for i, s := range servers {
		group.Go(func() error {
			list[i] = c.figuresOf(ctx, s)
			return nil
		})
	}
	_ = group.Wait() // each reason stands beside its server
	return list, ctx.Err()
}

func (c *Cell) figuresOf(ctx context.Context, s ServerInfo) ServerFigures {
	f := ServerFigures{Server: s}
	conn, err := c.meta.Pool().Get(s.Control)
	if err != nil {
		f.Err = err
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
	defer cancel()
	began := time.Now()
	r, err := pb.NewChunkClient(conn).ChunkStatus(ctx, &pb.ChunkStatusRequest{})
	f.At = time.Now()
	f.RoundTrip = f.At.Sub(began)
	if err != nil {
		f.Err = errs.Wrap(pb.FromStatus(err), "ask chunk server %d", s.ID)
		return f
	}
	f.fill(r)
	return f
}

func (f *ServerFigures) fill(r *pb.ChunkStatusReply) {
	f.NetworkIn, f.NetworkOut, f.Link, f.GCPauses = r.NetIn, r.NetOut, r.LinkBytesPerS, time.Duration(r.GcPauseNs)
	for _, ns := range r.BucketNs {
		f.BucketEnds = append(f.BucketEnds, time.Duration(ns))
	}
	for _, d := range r.Devices {
		f.Devices = append(f.Devices, DeviceFigures{d.Device, int(d.Width), int(d.Running), int(d.Waiting)})
	}
	for _, k := range r.Classes {
		f.Classes = append(f.Classes, ClassFigures{Device: k.Device, Tenant: k.Tenant, Class: k.Class, Reads: k.Reads, Writes: k.Writes,
			ReadBytes: k.ReadBytes, WroteBytes: k.WroteBytes, Reserved: k.Reserved, Late: k.Late, Refused: k.Refused, Gated: k.Gated, GateTime: time.Duration(k.GateNs),
			Throttled: time.Duration(k.ThrottledNs), DeviceTime: time.Duration(k.DeviceNs), Waiting: int(k.Waiting), Running: int(k.Running),
			Queue: k.Queue, Service: k.Service, QueueTime: time.Duration(k.QueueNs), ServiceTime: time.Duration(k.ServiceNs),
			Reservation: Rate{k.ReservedBytesPerS, k.ReservedOpsPerS}, Limit: Rate{k.LimitBytesPerS, k.LimitOpsPerS}})
	}
	for _, v := range r.Volumes {
		f.Volumes = append(f.Volumes, VolumeFigures{v.Volume, v.Reads, v.Writes, v.ReadBytes, v.WroteBytes, v.Times})
	}
	for _, s := range r.Slos {
		f.SLOs = append(f.SLOs, SLOFigures{s.Class, s.Judged_5M, s.Late_5M, s.Judged_1H, s.Late_1H})
	}
}
