package janitor

import (
	"context"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
)

// placementTimeout bounds the question where a segment's shards are.
const placementTimeout = 30 * time.Second

// compare reads a whole segment's data, encodes it again and holds the parity
// against the headers' checksums. The server of a segment's first parity shard
// does it, so that each segment is compared once.
func (s *scrub) compare(ctx context.Context, ref frame.ShardRef) {
	st, err := s.dev.Store.Stat(ref)
	if err != nil || int(ref.Shard) != int(st.Geometry.K) {
		return
	}
	t, err := s.janitor.segmentTask(ctx, ref, &s.dev)
	if err == nil {
		err = s.compareAll(ctx, t)
	}
	if err != nil && ctx.Err() == nil {
		s.janitor.log.Warn("parity not compared", "segment", ref.Segment, "err", err)
	}
	if t == nil {
		return
	}
	var reports []*pb.ShardReport
	for _, src := range t.sources {
		if src.found {
			reports = append(reports, &pb.ShardReport{Kind: uint32(errs.Corrupt), Detail: "deep scrub: wrong bytes were read",
				Shard: &pb.ShardRef{Segment: uint64(src.ref.Segment), Shard: uint32(src.ref.Shard), Generation: uint32(src.ref.Generation), Device: uint64(src.device)}})
		}
	}
	if len(reports) > 0 {
		s.janitor.tell(ctx, reports)
	}
}

// segmentTask asks where a segment is and gives a task that can read it.
func (j *Janitor) segmentTask(ctx context.Context, ref frame.ShardRef, dev *Device) (*task, error) {
	asking, cancel := context.WithTimeout(ctx, placementTimeout)
	defer cancel()
	var reply *pb.GetSegmentsReply
	err := j.cfg.Meta.Do(asking, func(ctx context.Context, m pb.MetaClient) (err error) {
		reply, err = m.GetSegments(ctx, &pb.GetSegmentsRequest{Ids: []uint64{uint64(ref.Segment)}})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(reply.Segments) == 0 || !reply.Segments[0].Finalized {
		return nil, errs.New(errs.NotFound, "", "segment %d is not there, or not finalized", ref.Segment)
	}
	seg := reply.Segments[0]
	r := &pb.RebuildShard{Seal: seg.Seal, InPlace: true, Target: &pb.ShardSpec{Shard: &pb.ShardRef{Segment: seg.Id, Shard: uint32(ref.Shard), Generation: uint32(ref.Generation)},
		Volume: seg.Volume, Epoch: seg.Epoch, Geometry: seg.Geometry, Length: seg.ShardLength, Map: seg.Map}}
	addresses := map[uint64]string{}
	for _, a := range reply.Servers {
		addresses[a.Server] = a.DataAddress
	}
	for i, p := range seg.Placements {
		r.Sources = append(r.Sources, &pb.RebuildSource{Shard: uint32(i), Generation: p.Generation, Device: p.Device, DataAddress: addresses[p.Server]})
	}
	b, err := jobOf(r)
	if err != nil {
		return nil, err
	}
	return &task{job: b, Work: j.work(dev)}, nil
}

// compareAll goes through the segment batch by batch.
func (s *scrub) compareAll(ctx context.Context, t *task) error {
	list, err := t.list(ctx)
	for err == nil && len(list) > 0 {
		batch := cutBatch(list)
		list = list[len(batch):]
		err = s.compareBatch(ctx, t, batch)
	}
	return err
}

func (s *scrub) compareBatch(ctx context.Context, t *task, list []sealed) error {
	batch := make([]*wanted, len(list))
	var bytes int64
	parity := t.spec.Geometry.ParityMask()
	for i := range list {
		// Parity counts as tried: what is compared must come from data alone.
		batch[i] = &wanted{sealed: list[i], units: make([][]byte, t.spec.Geometry.Shards()), tried: parity}
		bytes += int64(list[i].header.Shape.Unit) * int64(list[i].header.Shape.Data.Count())
	}
	if err := s.pace.take(ctx, bytes); err != nil {
		return err
	}
	if err := t.gather(ctx, batch, layout.MaxShards); err != nil {
		return err
	}
	for _, w := range batch {
		if w.header.Shape.Unit == 0 {
			continue
		}
		if err := t.decode(w, parity); err != nil {
			return err
		}
		s.mu.Lock()
		s.met.ParityCompared += uint64(w.header.Shape.Unit) * uint64(t.spec.Geometry.M)
		s.mu.Unlock()
	}
	return nil
}
