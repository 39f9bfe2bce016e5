package state

import (
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// fits tells whether the seal can be one of this segment. What it knows of any
// list of stripes: each takes part in every parity shard and in at least one
// data shard, so parity shards hold the whole list, end where the longest data
// shard ends, and a data shard that counts as many stripes has the same digest.
func (s *Seal) fits(seg *Segment) error {
	bad := func(format string, args ...any) error {
		return errs.New(errs.InvalidArgument, "check seal", format, args...).
			WithHint("the seal does not describe a list of stripes of segment %d: count again from its headers", seg.ID)
	}
	g := seg.Geometry
	if s.Segment != seg.ID || len(s.Shards) != g.Shards() {
		return bad("seal of segment %d with %d shards for segment %d of %v", s.Segment, len(s.Shards), seg.ID, g)
	}
	if (s.Count == 0) != (s.First == 0) || (s.Count == 0) != (s.Last == 0) || s.First > s.Last {
		return bad("segment %d: %d stripes from seq %d to %d", seg.ID, s.Count, s.First, s.Last)
	}
	if s.Count > 0 && uint64(s.Last-s.First) < uint64(s.Count)-1 {
		return bad("segment %d: %d stripes do not fit between seq %d and %d", seg.ID, s.Count, s.First, s.Last)
	}
	whole := s.Shards[g.K]
	if whole.Count != s.Count {
		return bad("segment %d shard %d: parity holds %d of %d stripes", seg.ID, g.K, whole.Count, s.Count)
	}
	var longest layout.ShardOffset
	var sum uint64
	for i, sh := range s.Shards {
		if sh.Length < 0 || sh.Length%layout.BlockSize != 0 || sh.Length > seg.ShardLength {
			return bad("segment %d shard %d: length %d of at most %d", seg.ID, i, sh.Length, seg.ShardLength)
		}
		if !sh.sublist(whole) {
			return bad("segment %d shard %d: its list of %d stripes is none of the %d", seg.ID, i, sh.Count, s.Count)
		}
		if i >= int(g.K) {
			if sh != whole {
				return bad("segment %d shard %d: parity shards differ", seg.ID, i)
			}
			continue
		}
		longest, sum = max(longest, sh.Length), sum+uint64(sh.Count)
	}
	if longest != whole.Length || sum < uint64(s.Count) {
		return bad("segment %d: data shards end at %d and count %d, parity ends at %d and counts %d",
			seg.ID, longest, sum, whole.Length, s.Count)
	}
	return nil
}

// sublist tells whether the shard's figures are possible beside the whole list's.
func (sh ShardSeal) sublist(whole ShardSeal) bool {
	switch {
	case sh.Count > whole.Count || sh.Length > whole.Length:
		return false
	case sh.Count == 0:
		return sh == ShardSeal{Digest: stripe.Digest{}}
	case sh.Count == whole.Count:
		return sh.Digest == whole.Digest
	}
	return true
}

func (s *Seal) equal(o *Seal) bool {
	return s.Segment == o.Segment && s.First == o.First && s.Last == o.Last && s.Count == o.Count &&
		slices.Equal(s.Shards, o.Shards)
}

// storedBytes is what the shards hold together.
func (s *Seal) storedBytes() uint64 {
	var n uint64
	for _, sh := range s.Shards {
		n += uint64(sh.Length)
	}
	return n
}
