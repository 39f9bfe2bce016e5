package janitor

import (
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// source is a shard of the segment that can be read.
type source struct {
	ref      frame.ShardRef
	device   layout.DeviceID
	addr     string
	doubtful bool // a part of it may be wrong
	failed   bool // it did not answer: asked only when there is no other
	found    bool // wrong bytes were found in it
}

// job is the rebuild of one shard, as the leader asked for it.
type job struct {
	spec    store.ShardSpec
	device  layout.DeviceID
	inPlace bool
	urgent  bool
	seal    stripe.Seal
	sources []*source
}

func (b *job) ref() frame.ShardRef {
	return frame.ShardRef{ShardKey: b.spec.Key, Generation: b.spec.Generation}
}

// goal is what the seal says of the shard.
func (b *job) goal() stripe.ShardSeal { return b.seal.Shards[b.spec.Key.Shard] }

// jobOf reads a request. Error: InvalidArgument.
func jobOf(r *pb.RebuildShard) (*job, error) {
	t := r.GetTarget()
	b := &job{device: layout.DeviceID(t.GetShard().GetDevice()), inPlace: r.InPlace, urgent: r.Urgent}
	bad := func(format string, args ...any) (*job, error) {
		return nil, errs.New(errs.InvalidArgument, "read request", format, args...)
	}
	k, m := t.GetGeometry().GetK(), t.GetGeometry().GetM()
	if k > layout.MaxData || m > layout.MaxParity {
		return bad("geometry %d+%d", k, m)
	}
	g := layout.Geometry{K: uint8(k), M: uint8(m)}
	if !g.Valid() || t.GetShard().GetSegment() == 0 || int(t.GetShard().GetShard()) >= g.Shards() || t.Length > layout.MaxShardLength {
		return bad("shard %d/%d of %v with %d bytes", t.GetShard().GetSegment(), t.GetShard().GetShard(), g, t.GetLength())
	}
	key := layout.ShardKey{Segment: layout.SegmentID(t.Shard.Segment), Shard: layout.ShardIndex(t.Shard.Shard)}
	b.spec = store.ShardSpec{Key: key, Generation: layout.Generation(t.Shard.Generation), Cell: layout.CellID(t.Cell), Volume: layout.VolumeID(t.Volume),
		Epoch: layout.Epoch(t.Epoch), Geometry: g, Length: layout.ShardOffset(t.Length), Map: t.Map, Purpose: layout.ForUpkeep}
	var err error
	if b.seal, err = sealOf(r.Seal, key.Segment, g); err != nil {
		return nil, err
	}
	for _, s := range r.Sources {
		if int(s.Shard) >= g.Shards() || s.DataAddress == "" {
			return bad("source %d at %q", s.Shard, s.DataAddress)
		}
		ref := frame.ShardRef{ShardKey: layout.ShardKey{Segment: key.Segment, Shard: layout.ShardIndex(s.Shard)}, Generation: layout.Generation(s.Generation)}
		b.sources = append(b.sources, &source{ref: ref, device: layout.DeviceID(s.Device), addr: s.DataAddress, doubtful: s.Doubtful})
	}
	return b, nil
}

func sealOf(p *pb.Seal, id layout.SegmentID, g layout.Geometry) (stripe.Seal, error) {
	s := stripe.NewSeal(id, g)
	if len(p.GetShards()) != g.Shards() || p.GetCount() == 0 {
		return s, errs.New(errs.InvalidArgument, "read request", "a seal of %d shards and %d stripes for %v", len(p.GetShards()), p.GetCount(), g)
	}
	s.First, s.Last, s.Count = layout.Seq(p.FirstSeq), layout.Seq(p.LastSeq), p.Count
	for i, sh := range p.Shards {
		if len(sh.Digest) != len(stripe.Digest{}) && len(sh.Digest) != 0 || sh.Length > layout.MaxShardLength {
			return s, errs.New(errs.InvalidArgument, "read request", "the seal of shard %d has %d bytes and a digest of %d", i, sh.Length, len(sh.Digest))
		}
		s.Shards[i] = stripe.ShardSeal{Count: sh.Count, Length: layout.ShardOffset(sh.Length)}
		copy(s.Shards[i].Digest[:], sh.Digest)
	}
	return s, nil
}
