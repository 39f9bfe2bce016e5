package client

import (
	"context"
	"io"
	"sync"
	"time"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// fenceTimeout bounds one server's answer: it drains, syncs and lists.
const fenceTimeout = 10 * time.Second

// fence shuts older writers out of segments and gives what each shard has
// (design §6.2, 6.3). All servers are asked at once; one that does not answer is
// silent. An error means that a newer recoverer was here.
func (l lease) fence(ctx context.Context, segments []*segment) ([]recovery.Segment, error) {
	out := make([]recovery.Segment, len(segments))
	bySegment := map[layout.SegmentID]int{}
	asked := map[layout.ServerID][]*pb.ShardRef{}
	for i, s := range segments {
		bySegment[s.id] = i
		out[i] = recovery.Segment{ID: s.id, Geometry: s.geometry, Shards: make([]recovery.Shard, len(s.shards))}
		for j, p := range s.shards {
			out[i].Shards[j] = recovery.Shard{Server: p.server, Device: p.device, Reason: "no answer"}
			asked[p.server] = append(asked[p.server], shardRefPB(s, layout.ShardIndex(j)))
		}
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	var newer error
	for server, refs := range asked {
		wait.Go(func() {
			answers, err := l.fenceServer(ctx, server, refs)
			if errs.KindOf(err) == errs.Unavailable {
				l.cell.places.moved(ctx, target{server, layout.SegmentID(refs[0].Segment)}) // for the next try
			}
			mu.Lock()
			defer mu.Unlock()
			if errs.KindOf(err) == errs.StaleEpoch {
				newer = err
			}
			for _, r := range refs {
				shard := &out[bySegment[layout.SegmentID(r.Segment)]].Shards[r.Shard]
				if a, ok := answers[shardKeyPB(r)]; ok {
					a.Server, a.Device = shard.Server, shard.Device
					*shard = *a
				} else if err != nil {
					shard.Reason = err.Error()
				}
			}
		})
	}
	wait.Wait()
	return out, newer
}

// fenceServer fences one server's shards and collects their lists. Only complete
// lists are given.
func (l lease) fenceServer(ctx context.Context, server layout.ServerID, refs []*pb.ShardRef) (map[layout.ShardKey]*recovery.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	client, err := l.cell.control(server)
	if err != nil {
		return nil, err
	}
	stream, err := client.Fence(ctx, &pb.FenceRequest{Epoch: uint64(l.epoch), Shards: refs})
	if err != nil {
		return nil, pb.FromStatus(err)
	}
	partial := map[layout.ShardKey]*recovery.Shard{}
	done := map[layout.ShardKey]*recovery.Shard{}
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return done, nil
		}
		if err != nil {
			return done, pb.FromStatus(err)
		}
		key := shardKeyPB(r.Shard)
		if errs.Kind(r.Kind) == errs.StaleEpoch {
			return done, errs.New(errs.StaleEpoch, "", "shard %v is fenced by a newer writer: %s", key, r.Message)
		}
		shard := partial[key]
		if shard == nil {
			shard = &recovery.Shard{State: recovery.Listed}
			partial[key] = shard
		}
		addFenceReply(shard, r)
		if r.Done {
			done[key] = shard
		}
	}
}

// addFenceReply adds one piece of a shard's list.
func addFenceReply(shard *recovery.Shard, r *pb.FenceReply) {
	if r.Kind != 0 || r.Wiped {
		shard.State, shard.Reason = recovery.CannotTell, r.Message
	}
	for _, s := range r.Stripes {
		shard.Stripes = append(shard.Stripes, fencedStripe(s))
	}
}

// fencedStripe is what a shard says of one stripe: it has it, can read only the
// header, or can't tell.
func fencedStripe(s *pb.FencedStripe) recovery.Stripe {
	out := recovery.Stripe{Seq: layout.Seq(s.Seq)}
	if s.Kind != 0 {
		out.Doubt, out.Reason = true, errs.Kind(s.Kind).String()
	}
	if len(s.Header) == 0 {
		return out
	}
	h, _, err := stripe.Decode(s.Header)
	if err != nil {
		out.Doubt, out.Reason = true, err.Error()
		return out
	}
	out.Header = h
	return out
}

// control gives the control connection of a chunk server.
func (c *Cell) control(server layout.ServerID) (pb.ChunkClient, error) {
	a, ok := c.places.address(server)
	if !ok {
		return nil, errs.New(errs.Unavailable, "", "no address known for server %d", server)
	}
	conn, err := c.meta.Pool().Get(a.control)
	if err != nil {
		return nil, err
	}
	return pb.NewChunkClient(conn), nil
}

func shardRefPB(s *segment, i layout.ShardIndex) *pb.ShardRef {
	p := s.shards[i]
	return &pb.ShardRef{Segment: uint64(s.id), Shard: uint32(i), Generation: uint32(p.generation), Device: uint64(p.device)}
}

func shardKeyPB(r *pb.ShardRef) layout.ShardKey {
	return layout.ShardKey{Segment: layout.SegmentID(r.GetSegment()), Shard: layout.ShardIndex(r.GetShard())}
}
