package server

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
	"strake/proto/pb"
)

// maxChunkCalls bounds the calls to chunk servers that one piece of work makes
// at once.
const maxChunkCalls = 32

// chunk gives the control API of a chunk server.
func (s *Server) chunk(view *state.View, id serverID) (pb.ChunkClient, error) {
	srv, ok := view.Server(id)
	if !ok {
		return nil, errs.New(errs.Unavailable, "", "chunk server %d is not registered", id)
	}
	conn, err := s.opts.Pool.Get(srv.ControlAddress)
	if err != nil {
		return nil, err
	}
	return pb.NewChunkClient(conn), nil
}

// placed is one shard of a segment with the server that holds it.
type placed struct {
	segment *state.Segment
	shard   layout.ShardIndex
	server  serverID
	place   state.Placement
}

func (p placed) ref() *pb.ShardRef {
	return &pb.ShardRef{Segment: uint64(p.segment.ID), Shard: uint32(p.shard), Generation: uint32(p.place.Generation), Device: uint64(p.place.Device)}
}

// byServer sorts the shards of segments by server. Shards of devices that are
// gone are left out.
func byServer(view *state.View, segments []state.Segment) map[serverID][]placed {
	sorted := map[serverID][]placed{}
	for i := range segments {
		seg := &segments[i]
		for n, p := range seg.Placements {
			if d, ok := view.Device(p.Device); ok {
				sorted[d.Server] = append(sorted[d.Server], placed{segment: seg, shard: layout.ShardIndex(n), server: d.Server, place: p})
			}
		}
	}
	return sorted
}

// shardCall asks one chunk server something of some shards; it gives a result
// for each of them.
type shardCall func(ctx context.Context, c pb.ChunkClient, shards []placed) ([]*pb.ShardResult, error)

// failure says that one shard could not be dealt with.
type failure struct {
	placed
	err      error
	answered bool // the server said so of this very shard
}

// byShard sorts the failures of one segment's shards. What was not said of the very
// shard says nothing about it, whatever kind it has.
func byShard(failed []failure) map[layout.ShardIndex]error {
	sorted := map[layout.ShardIndex]error{}
	for _, f := range failed {
		if sorted[f.shard] = f.err; !f.answered {
			sorted[f.shard] = errs.As(f.err, errs.Unavailable, "ask for shard %d/%d", f.segment.ID, f.shard)
		}
	}
	return sorted
}

// everywhere calls all servers of the shards at once, each bounded in time, and
// gives the shards that failed, sorted.
func (s *Server) everywhere(ctx context.Context, view *state.View, shards map[serverID][]placed, call shardCall) []failure {
	var mu sync.Mutex
	var failed []failure
	var group errgroup.Group
	group.SetLimit(maxChunkCalls)
	for id, list := range shards {
		group.Go(func() error {
			bad := s.callOne(ctx, view, id, list, call)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, bad...)
			return nil
		})
	}
	group.Wait()
	slices.SortFunc(failed, func(a, b failure) int {
		if a.segment.ID != b.segment.ID {
			return int(int64(a.segment.ID) - int64(b.segment.ID))
		}
		return int(a.shard) - int(b.shard)
	})
	return failed
}

func (s *Server) callOne(ctx context.Context, view *state.View, id serverID, list []placed, call shardCall) []failure {
	all := func(err error) []failure {
		var failed []failure
		for _, p := range list {
			failed = append(failed, failure{placed: p, err: err})
		}
		return failed
	}
	c, err := s.chunk(view, id)
	if err != nil {
		return all(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timing.ChunkCall)
	defer cancel()
	results, err := call(ctx, c, list)
	if err != nil {
		return all(errs.Wrap(pb.FromStatus(err), "chunk server %d", id))
	}
	done := map[layout.ShardKey]*pb.ShardResult{}
	for _, r := range results {
		done[layout.ShardKey{Segment: layout.SegmentID(r.GetShard().GetSegment()), Shard: layout.ShardIndex(r.GetShard().GetShard())}] = r
	}
	var failed []failure
	for _, p := range list {
		r, ok := done[layout.ShardKey{Segment: p.segment.ID, Shard: p.shard}]
		switch {
		case !ok:
			failed = append(failed, failure{placed: p, err: errs.New(errs.Unavailable, "", "chunk server %d said nothing of shard %d/%d", id, p.segment.ID, p.shard)})
		case r.GetKind() != 0:
			err := errs.New(errs.Kind(r.GetKind()), "", "chunk server %d, shard %d/%d: %s", id, p.segment.ID, p.shard, r.GetMessage())
			failed = append(failed, failure{placed: p, err: err, answered: true})
		}
	}
	return failed
}

// createShards makes the shards of segments, in room for a purpose.
func (s *Server) createShards(ctx context.Context, view *state.View, segments []state.Segment, purpose layout.Purpose) []failure {
	cell := uint64(view.Cell().ID)
	return s.everywhere(ctx, view, byServer(view, segments), func(ctx context.Context, c pb.ChunkClient, list []placed) ([]*pb.ShardResult, error) {
		req := &pb.CreateShardsRequest{}
		for _, p := range list {
			seg := p.segment
			req.Shards = append(req.Shards, &pb.ShardSpec{
				Shard: p.ref(), Volume: uint64(seg.Volume), Epoch: uint64(seg.Epoch), Geometry: geometryOut(seg.Geometry),
				Length: uint64(seg.ShardLength), Map: seg.Map, Cell: cell, Purpose: uint32(purpose),
			})
		}
		r, err := c.CreateShards(ctx, req)
		return r.GetResults(), err
	})
}

// finalizeShards tells shards their seals.
func (s *Server) finalizeShards(ctx context.Context, view *state.View, shards map[serverID][]placed) []failure {
	return s.everywhere(ctx, view, shards, func(ctx context.Context, c pb.ChunkClient, list []placed) ([]*pb.ShardResult, error) {
		req := &pb.FinalizeRequest{}
		for _, p := range list {
			seal := &p.segment.Seal
			req.Shards = append(req.Shards, &pb.FinalizeShard{Shard: p.ref(), LastSeq: uint64(seal.Last), Seal: shardSealOut(&seal.Shards[p.shard])})
		}
		r, err := c.Finalize(ctx, req)
		return r.GetResults(), err
	})
}

// deleteShards deletes shards. One that is not there is gone.
func (s *Server) deleteShards(ctx context.Context, view *state.View, shards map[serverID][]placed) []failure {
	failed := s.everywhere(ctx, view, shards, func(ctx context.Context, c pb.ChunkClient, list []placed) ([]*pb.ShardResult, error) {
		req := &pb.DeleteShardsRequest{}
		for _, p := range list {
			req.Shards = append(req.Shards, p.ref())
		}
		r, err := c.DeleteShards(ctx, req)
		return r.GetResults(), err
	})
	return slices.DeleteFunc(failed, func(f failure) bool {
		kind := errs.KindOf(f.err)
		return kind == errs.NotHere || kind == errs.NotFound
	})
}
