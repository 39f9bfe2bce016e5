package server

import (
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// Conversions of the control service's messages, which end here.

func shardRef(s *pb.ShardRef) (frame.ShardRef, error) {
	if s.GetSegment() == 0 || s.GetShard() >= layout.MaxShards {
		return frame.ShardRef{}, errs.New(errs.InvalidArgument, "", "no shard is named %d/%d", s.GetSegment(), s.GetShard())
	}
	key := layout.ShardKey{Segment: layout.SegmentID(s.Segment), Shard: layout.ShardIndex(s.Shard)}
	return frame.ShardRef{ShardKey: key, Generation: layout.Generation(s.Generation)}, nil
}

func shardSpec(s *pb.ShardSpec) (store.ShardSpec, error) {
	ref, err := shardRef(s.GetShard())
	if err != nil {
		return store.ShardSpec{}, err
	}
	k, m := s.GetGeometry().GetK(), s.GetGeometry().GetM()
	g := layout.Geometry{K: uint8(k), M: uint8(m)}
	switch {
	case k > layout.MaxData || m > layout.MaxParity || !g.Valid() || int(ref.Shard) >= g.Shards():
		err = errs.New(errs.InvalidArgument, "create shard "+ref.String(), "geometry %d+%d", k, m)
	case s.Length == 0 || s.Length > layout.MaxShardLength || s.Length%layout.BlockSize != 0:
		err = errs.New(errs.InvalidArgument, "create shard "+ref.String(), "length of %d bytes", s.Length)
	}
	return store.ShardSpec{Key: ref.ShardKey, Generation: ref.Generation, Cell: layout.CellID(s.Cell), Volume: layout.VolumeID(s.Volume),
		Epoch: layout.Epoch(s.Epoch), Geometry: g, Length: layout.ShardOffset(s.Length), Map: s.Map, Purpose: purposeIn(s.Purpose)}, err
}

// purposeIn reads a purpose; one of a later version is the most modest.
func purposeIn(p uint32) layout.Purpose {
	if p > uint32(layout.ForNeed) {
		return layout.ForData
	}
	return layout.Purpose(p)
}

func shardSeal(s *pb.ShardSeal) (stripe.ShardSeal, error) {
	if len(s.GetDigest()) != len(stripe.Digest{}) || s.Length > layout.MaxShardLength {
		return stripe.ShardSeal{}, errs.New(errs.InvalidArgument, "finalize", "a seal of length %d with a digest of %d bytes", s.GetLength(), len(s.GetDigest()))
	}
	return stripe.ShardSeal{Count: s.Count, Length: layout.ShardOffset(s.Length), Digest: stripe.Digest(s.Digest)}, nil
}

func result(s *pb.ShardRef, err error) *pb.ShardResult {
	r := &pb.ShardResult{Shard: s, Kind: uint32(errs.KindOf(err))}
	if err != nil {
		r.Message = err.Error()
	}
	return r
}
