package client

import (
	"context"
	"math"
	"time"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/pb"
	"strake/proto/stripe"
)

const (
	// allocateTimeout bounds one AllocateSegments call: the metadata leader creates
	// shards on k+m servers meanwhile, and tries others when some fail.
	allocateTimeout = 20 * time.Second
	sealTimeout     = 10 * time.Second
	moveTimeout     = time.Second
)

// lease names the writer's right in calls to the metadata service.
type lease struct {
	cell    *Cell
	session layout.SessionID // that it hangs on
	volume  layout.VolumeID
	epoch   layout.Epoch
}

// allocate asks for segments and gives them as the write core knows them.
func (l lease) allocate(ctx context.Context, a *write.Allocation) ([]write.Segment, error) {
	request := &pb.AllocateSegmentsRequest{
		Command: newCommand(), Session: uint64(l.session), Volume: uint64(l.volume), Epoch: uint64(l.epoch),
		Map: a.Map, Cleaning: a.Cold, Count: uint32(a.Count), Ahead: uint32(a.Ahead), ShardLength: uint64(a.MinLength), Urgent: a.Urgent,
	}
	for _, s := range a.Avoid {
		request.AvoidServers = append(request.AvoidServers, uint64(s))
	}
	ctx, cancel := context.WithTimeout(ctx, allocateTimeout)
	defer cancel()
	var r *pb.AllocateSegmentsReply
	err := l.cell.meta.DoWithin(ctx, allocateTimeout, func(ctx context.Context, m pb.MetaClient) (err error) {
		r, err = m.AllocateSegments(ctx, request)
		return err
	})
	if err != nil {
		return nil, errs.Wrap(err, "allocate segments")
	}
	segments := l.cell.places.learn(r.Segments, r.Servers)
	list := make([]write.Segment, len(segments))
	for i, s := range segments {
		list[i] = s.granted()
	}
	return list, nil
}

func (s *segment) granted() write.Segment {
	g := write.Segment{ID: s.id, Geometry: s.geometry, Length: s.length}
	for _, p := range s.shards {
		g.Shards = append(g.Shards, write.Shard{Server: p.server, Device: p.device, Generation: p.generation})
	}
	return g
}

// seal records seals in the metadata service.
func (l lease) seal(ctx context.Context, seals ...stripe.Seal) error {
	request := &pb.SealSegmentsRequest{Command: newCommand(), Volume: uint64(l.volume), Epoch: uint64(l.epoch)}
	for _, s := range seals {
		request.Seals = append(request.Seals, sealToPB(s))
	}
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	return l.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.SealSegments(ctx, request)
		return err
	})
}

// requestMove asks the cell's budget for a move by time-out.
func (l lease) requestMove(ctx context.Context, server layout.ServerID) (granted bool, retry time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	var r *pb.RequestMoveReply
	err := l.cell.meta.DoWithin(ctx, moveTimeout, func(ctx context.Context, m pb.MetaClient) (err error) {
		r, err = m.RequestMove(ctx, &pb.RequestMoveRequest{Session: uint64(l.session), Volume: uint64(l.volume),
			Epoch: uint64(l.epoch), Server: uint64(server)})
		return err
	})
	if err != nil {
		return false, moveTimeout
	}
	return r.Granted, time.Duration(r.RetryMs) * time.Millisecond
}

// release gives the lease back in good order.
func (l lease) release(ctx context.Context, last layout.Seq) error {
	request := &pb.ReleaseLeaseRequest{Command: newCommand(), Session: uint64(l.session),
		Volume: uint64(l.volume), Epoch: uint64(l.epoch), LastSeq: uint64(last)}
	return l.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.ReleaseLease(ctx, request)
		return err
	})
}

// abandon lets go of a lease whose volume is left to be recovered, as the end of
// the session would: who failed to take a volume over, or to close it in order, is
// not to keep it from others for as long as the process lives. At its best; a lease
// that a later epoch took is not touched.
func (l lease) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTimeout)
	defer cancel()
	// An older metadata server, which does not know abandon, refuses this seq.
	request := &pb.ReleaseLeaseRequest{Command: newCommand(), Session: uint64(l.session),
		Volume: uint64(l.volume), Epoch: uint64(l.epoch), LastSeq: math.MaxUint64, Abandon: true}
	_ = l.cell.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.ReleaseLease(ctx, request)
		return err
	})
}

func sealToPB(s stripe.Seal) *pb.Seal {
	out := &pb.Seal{Segment: uint64(s.Segment), FirstSeq: uint64(s.First), LastSeq: uint64(s.Last), Count: s.Count}
	for _, h := range s.Shards {
		out.Shards = append(out.Shards, &pb.ShardSeal{Count: h.Count, Length: uint64(h.Length), Digest: append([]byte(nil), h.Digest[:]...)})
	}
	return out
}

func sealFromPB(s *pb.Seal) stripe.Seal {
	out := stripe.Seal{Segment: layout.SegmentID(s.Segment), First: layout.Seq(s.FirstSeq), Last: layout.Seq(s.LastSeq), Count: s.Count}
	for _, h := range s.Shards {
		shard := stripe.ShardSeal{Count: h.Count, Length: layout.ShardOffset(h.Length)}
		copy(shard.Digest[:], h.Digest)
		out.Shards = append(out.Shards, shard)
	}
	return out
}
