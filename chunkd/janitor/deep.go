package janitor

import (
	"context"
	"fmt"
	"slices"
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
	if err != nil {
		s.notCompared(ctx, ref, err)
		return
	}
	defer t.memory.end()
	s.compareAll(ctx, t)
}

func (s *scrub) notCompared(ctx context.Context, ref frame.ShardRef, err error) {
	if ctx.Err() == nil {
		s.janitor.log.Warn("parity not compared", "segment", ref.Segment, "err", err)
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
	return newTask(b, j.work(dev)), nil
}

// compareAll goes through the segment batch by batch, and reports what it found:
// sources with wrong bytes, and parity that is not what the data encodes to.
func (s *scrub) compareAll(ctx context.Context, t *task) {
	odd := make([]oddParity, t.spec.Geometry.Shards())
	list, err := t.list(ctx)
	for err == nil && len(list) > 0 {
		batch := cutBatch(list)
		list = list[len(batch):]
		err = s.compareBatch(ctx, t, batch, odd)
	}
	if err != nil {
		s.notCompared(ctx, t.ref(), err)
	}
	var found []finding
	for _, src := range t.sources {
		shard := refOut(src.ref, src.device)
		if src.found {
			found = append(found, finding{shard: shard, kind: errs.Corrupt, text: "deep scrub: wrong bytes were read"})
		}
		if o := odd[src.ref.Shard]; o.stripes > 0 {
			found = append(found, finding{shard: shard, at: o.at, kind: errs.Internal,
				text: fmt.Sprintf("deep scrub: the parity of %d stripes, the first of them %d, is not what their data encodes to; "+
					"it can't be made again from them: have the data written again (copy it, or clean the volume)", o.stripes, o.first)})
		}
	}
	s.report(ctx, found...)
}

// oddParity counts a parity shard's stripes that do not match their data.
type oddParity struct {
	stripes int
	first   layout.Seq
	at      layout.ShardOffset
}

// compareBatch compares some stripes. Where wrong bytes keep one from being read,
// the others are compared one by one. Error: a source that does not answer.
func (s *scrub) compareBatch(ctx context.Context, t *task, list []sealed, odd []oddParity) error {
	batch := make([]*wanted, len(list))
	var bytes int64
	parity := t.spec.Geometry.ParityMask()
	t.memory.again()
	for i := range list {
		// Parity counts as tried: what is compared must come from data alone.
		batch[i] = &wanted{sealed: list[i], units: make([][]byte, t.spec.Geometry.Shards()), tried: parity}
		bytes += int64(list[i].header.Shape.Unit) * int64(list[i].header.Shape.Data.Count())
	}
	if err := s.pace.take(ctx, bytes); err != nil {
		return err
	}
	if err := t.gather(ctx, batch, layout.MaxShards); err != nil {
		if ctx.Err() != nil || !slices.ContainsFunc(t.sources, func(src *source) bool { return src.found }) ||
			slices.ContainsFunc(t.sources, func(src *source) bool { return src.failed }) {
			return err
		}
		if len(list) == 1 {
			return nil // it can't be compared before its shard is repaired
		}
		for i := range list {
			if err := s.compareBatch(ctx, t, list[i:i+1], odd); err != nil {
				return err
			}
		}
		return nil
	}
	for _, w := range batch {
		if w.header.Shape.Unit == 0 {
			continue
		}
		if err := t.compare(w, odd); err != nil {
			return err
		}
		s.mu.Lock()
		s.met.ParityCompared += uint64(w.header.Shape.Unit) * uint64(t.spec.Geometry.M)
		s.mu.Unlock()
	}
	return nil
}

// compare encodes a stripe's data again and counts the parity units that differ
// from what its header says.
func (t *task) compare(w *wanted, odd []oddParity) error {
	parity := t.spec.Geometry.ParityMask()
	if err := t.encode(w, parity); err != nil {
		return err
	}
	for m := parity; m != 0; m &= m - 1 {
		s, _ := m.Nth(0)
		if unitFits(w.header, s, w.units[s]) {
			continue
		}
		o := &odd[s]
		if o.stripes++; o.stripes == 1 {
			o.first, o.at = w.header.Seq, w.header.Offset
		}
	}
	return nil
}
