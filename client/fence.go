package client

import (
	"context"
	"io"
	"time"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// fenceTimeout bounds one server's answer: it drains, syncs and lists.
const fenceTimeout = 10 * time.Second

// answered is what one server said of the shards that it was asked for.
type answered struct {
	server layout.ServerID
	refs   []*pb.ShardRef
	shards map[layout.ShardKey]*recovery.Shard
	err    error
}

// fence shuts older writers out of segments and gives what each shard has
// (design §6.2, 6.3). All servers are asked at once; one that does not answer is
// silent, and so is one that is late when the others' answers decide in. An error
// means that a newer recoverer was here.
func (l lease) fence(ctx context.Context, in recovery.Input, segments []*segment) ([]recovery.Segment, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in.Segments = make([]recovery.Segment, len(segments))
	bySegment := map[layout.SegmentID]*recovery.Segment{}
	asked := map[layout.ServerID][]*pb.ShardRef{}
	for i, s := range segments {
		in.Segments[i] = recovery.Segment{ID: s.id, Geometry: s.geometry, Shards: make([]recovery.Shard, len(s.shards))}
		bySegment[s.id] = &in.Segments[i]
		for j, p := range s.shards {
			in.Segments[i].Shards[j] = recovery.Shard{Server: p.server, Device: p.device, Reason: "no answer"}
			asked[p.server] = append(asked[p.server], shardRefPB(s, layout.ShardIndex(j)))
		}
	}
	answers := make(chan answered, len(asked)) // those that are late block nobody
	for server, refs := range asked {
		go func() {
			shards, err := l.fenceServer(ctx, server, refs)
			answers <- answered{server, refs, shards, err}
		}()
	}
	var patience recovery.Patience
	newer := l.collect(ctx, answers, len(asked), bySegment, func(since time.Duration) bool { return patience.Over(since, in) })
	return in.Segments, newer
}

// collect adds answers to the segments until all are there, or over says that it is
// enough. Its error means that a newer recoverer was here.
func (l lease) collect(ctx context.Context, answers <-chan answered, missing int, segments map[layout.SegmentID]*recovery.Segment, over func(since time.Duration) bool) (newer error) {
	began := time.Now()
	look := time.NewTicker(recovery.LookEvery)
	defer look.Stop()
	for missing > 0 {
		select {
		case a := <-answers:
			missing--
			if errs.KindOf(a.err) == errs.Unavailable {
				l.cell.places.moved(ctx, target{a.server, layout.SegmentID(a.refs[0].Segment)}) // for the next try
			}
			if errs.KindOf(a.err) == errs.StaleEpoch {
				newer = a.err
			}
			a.addTo(segments)
		case now := <-look.C:
			if over(now.Sub(began)) {
				return newer
			}
		}
	}
	return newer
}

// addTo adds a server's answer to the segments that it has shards of.
func (a answered) addTo(segments map[layout.SegmentID]*recovery.Segment) {
	for _, r := range a.refs {
		shard := &segments[layout.SegmentID(r.Segment)].Shards[r.Shard]
		if said, ok := a.shards[shardKeyPB(r)]; ok {
			said.Server, said.Device = shard.Server, shard.Device
			*shard = *said
		} else if a.err != nil {
			shard.Reason = a.err.Error()
		}
	}
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
