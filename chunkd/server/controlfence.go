package server

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

// fencePiece is how many bytes of headers one message of a fence's stream holds,
// so that a message stays under 1 MiB.
const fencePiece = 768 << 10

// Fence implements pb.ChunkServer. A shard's answer has one of three forms. An
// error: it can't tell anything, not even that a stripe is missing. A stripe
// with a kind: it can't tell of that one. All else is certain: stripes listed
// are there, stripes not listed never were.
func (c *Control) Fence(req *pb.FenceRequest, stream grpc.ServerStreamingServer[pb.FenceReply]) error {
	if err := bounded(len(req.Shards)); err != nil {
		return err
	}
	var sending sync.Mutex // a stream takes one message at a time; held over one shard's whole list
	group, ctx := errgroup.WithContext(stream.Context())
	group.SetLimit(shardsAtOnce)
	for _, s := range req.Shards {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			answer := c.fence(s, layout.Epoch(req.Epoch))
			sending.Lock()
			defer sending.Unlock()
			return answer.send(stream)
		})
	}
	return group.Wait()
}

// fenced is what one shard answers.
type fenced struct {
	shard       *pb.ShardRef
	incarnation layout.Incarnation
	stripes     []store.Fenced
	wiped       bool
	err         error
}

func (c *Control) fence(s *pb.ShardRef, epoch layout.Epoch) (answer fenced) {
	answer.shard = s
	if c.srv.devices.byID(layout.DeviceID(s.GetDevice())) == nil {
		// A device that was formatted again has another id: what the shard held is gone.
		answer.wiped = true
	}
	answer.err = c.with(s, func(d *device, ref frame.ShardRef) (err error) {
		answer.incarnation = d.Store.Incarnation()
		answer.stripes, err = d.Store.Fence(ref, epoch)
		return err
	})
	return answer
}

// send streams the answer in pieces; the last has done set.
func (a *fenced) send(stream grpc.ServerStreamingServer[pb.FenceReply]) error {
	if a.err != nil {
		return stream.Send(&pb.FenceReply{Shard: a.shard, Kind: uint32(errs.KindOf(a.err)), Message: a.err.Error(),
			Incarnation: uint64(a.incarnation), Wiped: a.wiped, Done: true})
	}
	piece := &pb.FenceReply{Shard: a.shard, Incarnation: uint64(a.incarnation)}
	size := 0
	for _, f := range a.stripes {
		if size+len(f.Header) > fencePiece && size > 0 {
			if err := stream.Send(piece); err != nil {
				return err
			}
			piece = &pb.FenceReply{Shard: a.shard, Incarnation: uint64(a.incarnation)}
			size = 0
		}
		piece.Stripes = append(piece.Stripes, &pb.FencedStripe{Seq: uint64(f.Seq), Header: f.Header, Kind: uint32(errs.KindOf(f.Err))})
		size += len(f.Header) + fencedOverhead
	}
	piece.Done = true
	return stream.Send(piece)
}

// fencedOverhead is what a stripe takes in a message beside its header.
const fencedOverhead = 32

// StatShards implements pb.ChunkServer.
func (c *Control) StatShards(_ context.Context, req *pb.StatShardsRequest) (*pb.StatShardsReply, error) {
	if err := bounded(len(req.Shards)); err != nil {
		return nil, err
	}
	reply := &pb.StatShardsReply{}
	for _, s := range req.Shards {
		stat := &pb.ShardStat{Shard: s}
		err := c.with(s, func(d *device, ref frame.ShardRef) error {
			got, err := d.Store.Stat(ref)
			if err == nil {
				stat.State, stat.StoredBytes = got.State.String(), uint64(got.Stored)
				stat.FenceEpoch, stat.Stripes = uint64(got.Fence), got.Stripes
			}
			return err
		})
		stat.Kind = uint32(errs.KindOf(err))
		reply.Shards = append(reply.Shards, stat)
	}
	return reply, nil
}

// ChunkStatus implements pb.ChunkServer.
func (c *Control) ChunkStatus(context.Context, *pb.ChunkStatusRequest) (*pb.ChunkStatusReply, error) {
	reply := &pb.ChunkStatusReply{Server: uint64(c.srv.id)}
	for _, d := range c.srv.devices.all {
		u, n := d.Store.Usage(), d.Store.Counters()
		state := "up"
		if d.err() != nil {
			state = "down"
		}
		reply.Devices = append(reply.Devices, &pb.DeviceStatus{
			Device: uint64(d.ID), Path: d.Path, Incarnation: uint64(d.Store.Incarnation()), Shards: u.Shards,
			StoredBytes: u.Stored, ReservedBytes: u.Reserved, TotalBytes: u.Total, State: state,
			BytesWritten: n.DataBytes + n.LogBytes + n.IndexBytes, BytesRead: n.ReadBytes,
			BadFrames: c.srv.Counters.BadFrames.Load(),
		})
	}
	c.srv.telemetry(reply)
	return reply, nil
}
