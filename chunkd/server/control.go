package server

import (
	"context"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

// Recoverer recovers and seals volumes whose writer is gone, digests tags, and cleans.
type Recoverer interface {
	// RecoverVolume closes the volume's last epoch: cut is the last seq that
	// stands, sealed counts the segments. undecided names what blocks it.
	RecoverVolume(ctx context.Context, volume layout.VolumeID, reason string) (cut layout.Seq, sealed int, undecided string, err error)
	// DigestTag computes a tag's content digest and has it recorded.
	DigestTag(ctx context.Context, tag layout.SnapshotID) error
	// CleanVolume cleans a volume that nobody writes: moved bytes were relocated,
	// garbage ones are left.
	CleanVolume(ctx context.Context, volume layout.VolumeID, reason string) (moved, garbage uint64, err error)
}

// Control is the control service of a server's devices.
type Control struct {
	pb.UnimplementedChunkServer
	srv       *Server
	recoverer Recoverer // nil: none here
}

var _ pb.ChunkServer = (*Control)(nil)

// NewControl makes the control service; recoverer may be nil.
func NewControl(s *Server, recoverer Recoverer) *Control {
	return &Control{srv: s, recoverer: recoverer}
}

const (
	// maxShardsPerCall bounds the shards that one call names.
	maxShardsPerCall = 4096
	// shardsAtOnce bounds the shards that one call works at side by side.
	shardsAtOnce = 16
)

// Typed gives errors that leave a call the status that carries their kind, the
// same for every method, and refuses calls that this program must not serve. It is for
// the gRPC server that Control is registered at.
func Typed() []grpc.ServerOption {
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := pb.CheckCall(ctx, info.FullMethod, req); err != nil {
			return nil, pb.ToStatus(err)
		}
		reply, err := handle(ctx, req)
		return reply, pb.ToStatus(err)
	}
	stream := func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		return pb.ToStatus(handle(srv, &pb.CheckedStream{ServerStream: ss, Method: info.FullMethod}))
	}
	return []grpc.ServerOption{grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream)}
}

// CreateShards implements pb.ChunkServer.
func (c *Control) CreateShards(_ context.Context, req *pb.CreateShardsRequest) (*pb.CreateShardsReply, error) {
	if err := bounded(len(req.Shards)); err != nil {
		return nil, err
	}
	return &pb.CreateShardsReply{Results: each(req.Shards, func(s *pb.ShardSpec) *pb.ShardResult {
		return result(s.GetShard(), c.create(s))
	})}, nil
}

func (c *Control) create(s *pb.ShardSpec) error {
	spec, err := shardSpec(s)
	if err != nil {
		return err
	}
	if spec.Cell != c.srv.cell {
		return errs.New(errs.WrongCell, "create shard "+spec.Key.String(), "this server belongs to cell %x, the shard to cell %x", c.srv.cell, spec.Cell)
	}
	d, err := c.device(s.Shard)
	if err != nil {
		return err
	}
	if err := d.Store.Create(spec); err != nil {
		return err
	}
	c.srv.devices.created(frame.ShardRef{ShardKey: spec.Key, Generation: spec.Generation}, d)
	return nil
}

// Finalize implements pb.ChunkServer.
func (c *Control) Finalize(_ context.Context, req *pb.FinalizeRequest) (*pb.FinalizeReply, error) {
	if err := bounded(len(req.Shards)); err != nil {
		return nil, err
	}
	return &pb.FinalizeReply{Results: each(req.Shards, func(s *pb.FinalizeShard) *pb.ShardResult {
		return result(s.GetShard(), c.finalize(s))
	})}, nil
}

func (c *Control) finalize(s *pb.FinalizeShard) error {
	seal, err := shardSeal(s.Seal)
	if err != nil {
		return err
	}
	return c.with(s.Shard, func(d *device, ref frame.ShardRef) error {
		return d.Store.Finalize(ref, layout.Seq(s.LastSeq), seal)
	})
}

// DeleteShards implements pb.ChunkServer.
func (c *Control) DeleteShards(_ context.Context, req *pb.DeleteShardsRequest) (*pb.DeleteShardsReply, error) {
	if err := bounded(len(req.Shards)); err != nil {
		return nil, err
	}
	return &pb.DeleteShardsReply{Results: each(req.Shards, func(s *pb.ShardRef) *pb.ShardResult {
		return result(s, c.with(s, c.remove))
	})}, nil
}

func (c *Control) remove(d *device, ref frame.ShardRef) error {
	err := d.Store.Delete(ref)
	if err == nil {
		c.srv.devices.deleted(ref, d)
	}
	return err
}

// RecoverVolume implements pb.ChunkServer.
func (c *Control) RecoverVolume(ctx context.Context, req *pb.RecoverVolumeRequest) (*pb.RecoverVolumeReply, error) {
	if c.recoverer == nil {
		return nil, errs.New(errs.Unavailable, "recover volume", "this server has no janitor").WithHint("ask another chunk server")
	}
	cut, sealed, undecided, err := c.recoverer.RecoverVolume(ctx, layout.VolumeID(req.Volume), req.Reason)
	if err != nil {
		return nil, err
	}
	return &pb.RecoverVolumeReply{Cut: uint64(cut), Sealed: uint32(sealed), Undecided: undecided}, nil
}

// DigestTag implements pb.ChunkServer.
func (c *Control) DigestTag(ctx context.Context, req *pb.DigestTagRequest) (*pb.DigestTagReply, error) {
	if c.recoverer == nil {
		return nil, errs.New(errs.Unavailable, "digest tag", "this server has no janitor").WithHint("ask another chunk server")
	}
	return &pb.DigestTagReply{}, c.recoverer.DigestTag(ctx, layout.SnapshotID(req.Snapshot))
}

// CleanVolume implements pb.ChunkServer.
func (c *Control) CleanVolume(ctx context.Context, req *pb.CleanVolumeRequest) (*pb.CleanVolumeReply, error) {
	if c.recoverer == nil {
		return nil, errs.New(errs.Unavailable, "clean volume", "this server has no janitor").WithHint("ask another chunk server")
	}
	moved, garbage, err := c.recoverer.CleanVolume(ctx, layout.VolumeID(req.Volume), req.Reason)
	return &pb.CleanVolumeReply{MovedBytes: moved, GarbageBytes: garbage}, err
}

// with runs do with the device and the shard that a reference names.
func (c *Control) with(s *pb.ShardRef, do func(*device, frame.ShardRef) error) error {
	ref, err := shardRef(s)
	if err != nil {
		return err
	}
	d, err := c.device(s)
	if err != nil {
		return err
	}
	return do(d, ref)
}

// device gives the device that a reference names; it must be one of this
// server's, because what is said of a shard binds a disk and not an address.
func (c *Control) device(s *pb.ShardRef) (*device, error) {
	d := c.srv.devices.byID(layout.DeviceID(s.GetDevice()))
	if d == nil {
		return nil, errs.New(errs.NotHere, "", "device %d is not on this server", s.GetDevice()).WithHint("ask for the placement")
	}
	return d, d.err()
}

// each runs do for every item, shardsAtOnce side by side since each waits for
// its device, and gives the results in the items' order.
func each[In, Out any](items []In, do func(In) Out) []Out {
	out := make([]Out, len(items))
	var group errgroup.Group
	group.SetLimit(shardsAtOnce)
	for i, item := range items {
		group.Go(func() error { out[i] = do(item); return nil })
	}
	group.Wait()
	return out
}

func bounded(n int) error {
	if n > maxShardsPerCall {
		return errs.New(errs.TooLarge, "", "%d shards in one call, at most %d are allowed", n, maxShardsPerCall)
	}
	return nil
}
