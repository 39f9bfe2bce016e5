package store

import (
	"cmp"
	"slices"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
)

// doubtsOf visits the stripes that were durable in a shard and are damaged
// beyond their record.
func (s *Store) doubtsOf(key layout.ShardKey, visit func(offset layout.ShardOffset, seq layout.Seq, unit uint32) error) error {
	it, err := s.index.keysOf(format.KindDoubt, key)
	if err != nil {
		return err
	}
	return each(it, func(k, value []byte) error {
		_, offset, seq, ok := format.DecodeStripeKey(k)
		unit, err := format.DecodeDoubt(value)
		if !ok || err != nil {
			return errs.New(errs.Corrupt, "read index", "a doubt of shard %v is damaged", key)
		}
		return visit(offset, seq, unit)
	})
}

// addDoubts adds the doubts to a fenced shard's list.
func (s *Store) addDoubts(sh *shard, list []Fenced) ([]Fenced, error) {
	if !s.table.row(sh.slot).doubts {
		return list, nil
	}
	err := s.doubtsOf(sh.ref.ShardKey, func(_ layout.ShardOffset, seq layout.Seq, _ uint32) error {
		list = append(list, Fenced{Seq: seq, Err: doubtful(sh.ref.ShardKey, seq)})
		return nil
	})
	slices.SortStableFunc(list, func(a, b Fenced) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, err
}

// checkDoubts refuses a read that touches a doubtful stripe: its place in the
// data file was never written and would read as zeros.
func (s *Store) checkDoubts(key layout.ShardKey, offset layout.ShardOffset, n int64) error {
	return s.doubtsOf(key, func(at layout.ShardOffset, seq layout.Seq, unit uint32) error {
		if at < offset+layout.ShardOffset(n) && offset < at+layout.ShardOffset(unit) {
			return doubtful(key, seq)
		}
		return nil
	})
}

func doubtful(key layout.ShardKey, seq layout.Seq) error {
	return errs.New(errs.Corrupt, "", "stripe %d of shard %v was durable here and is damaged", seq, key)
}
