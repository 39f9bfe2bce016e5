package state

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

func (c MarkLost) check() error  { return checkShards("mark lost", c.Shards) }
func (c MarkSound) check() error { return checkShards("mark sound", c.Shards) }

func checkShards(op string, list []ShardAt) error {
	if len(list) == 0 || len(list) > MaxSegmentList {
		return errs.New(errs.InvalidArgument, op, "%d shards named, 1 to %d are possible", len(list), MaxSegmentList)
	}
	for _, at := range list {
		if at.Segment == 0 || at.Generation == 0 || at.Shard >= layout.MaxShards {
			return errs.New(errs.InvalidArgument, op, "shard %d/%d generation %d", at.Segment, at.Shard, at.Generation)
		}
	}
	return nil
}

func (c MarkLost) apply(t *tables, r *Result) error {
	t.markShards(c.Shards, func(s *Segment, i layout.ShardIndex) bool {
		if s.Lost.Has(i) {
			return false
		}
		s.Lost = s.Lost.With(i)
		r.emit(ShardLost{layout.ShardKey{Segment: s.ID, Shard: i}})
		return true
	})
	return nil
}

func (c MarkSound) apply(t *tables, r *Result) error {
	t.markShards(c.Shards, func(s *Segment, i layout.ShardIndex) bool {
		if !s.Lost.Has(i) {
			return false
		}
		s.Lost = s.Lost.Without(i)
		r.emit(ShardRepaired{layout.ShardKey{Segment: s.ID, Shard: i}})
		return true
	})
	return nil
}

// markShards calls mark for each shard that is still where the sender saw it, in
// a segment that is sealed; mark tells whether it changed the segment.
func (t *tables) markShards(list []ShardAt, mark func(*Segment, layout.ShardIndex) bool) {
	for _, at := range list {
		s := t.segment(at.Segment)
		if s == nil || s.State != Sealed && s.State != Finalized || int(at.Shard) >= len(s.Placements) || s.Placements[at.Shard].Generation != at.Generation {
			continue
		}
		if mark(s, at.Shard) {
			v := t.volume(s.Volume)
			t.putSegment(s, v)
			t.putVolume(v)
		}
	}
}
