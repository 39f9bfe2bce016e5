package store

import (
	"errors"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
)

// load fills the table from the index.
func (s *Store) load() error {
	if err := s.index.onlyKnown(); err != nil {
		return err
	}
	it, err := s.index.keysOfKind(format.KindShard)
	if err != nil {
		return err
	}
	err = each(it, func(key, value []byte) error {
		k, ok := format.DecodeShardKey(key)
		rec, err := format.DecodeShard(value)
		if err != nil {
			return err
		}
		if !ok || rec.Key != k {
			return errs.New(errs.Corrupt, "read index", "shard key %x", key)
		}
		r := rowOf(&rec)
		if r.state != format.ShardFinalized {
			if err := s.count(&r); err != nil {
				return err
			}
		}
		s.table.insert(r)
		return nil
	})
	if err != nil {
		return err
	}
	return s.loadDoubts()
}

// count sums up what the index has of a shard that can still change. A shard
// whose list can't be read can't tell; a record of another version is refused, with
// Version: left out, it would count as a write that never came.
func (s *Store) count(r *row) error {
	r.stored, r.stripes = 0, 0
	err := s.index.stripesOf(r.key(), func(offset layout.ShardOffset, seq layout.Seq, header []byte) error {
		r.stripes++
		v, err := checkRecord(r.key(), offset, seq, header)
		if errs.KindOf(err) == errs.Version {
			return errs.As(err, errs.Version, "read index").(*errs.Error).WithHint(otherBuild)
		}
		if err != nil {
			s.logger.Error("a stripe's record is damaged", "segment", r.segment, "shard", r.shard, "seq", seq, "err", err)
			return nil // known by its key: the stripe alone is in doubt
		}
		r.stored += v.Unit / layout.BlockSize
		return nil
	})
	if errs.KindOf(err) == errs.Version {
		return err
	}
	if err != nil {
		s.logger.Error("a shard's list is unreadable", "segment", r.segment, "shard", r.shard, "err", err)
		r.flags |= format.FlagDoubtful
	}
	return nil
}

func (s *Store) loadDoubts() error {
	it, err := s.index.keysOfKind(format.KindDoubt)
	if err != nil {
		return err
	}
	return each(it, func(key, _ []byte) error {
		k, _, _, ok := format.DecodeStripeKey(key)
		if !ok {
			return errs.New(errs.Corrupt, "read index", "doubt key %x", key)
		}
		s.withRow(k, func(r *row) { r.doubts = true })
		return nil
	})
}

// withRow changes the row of a shard, if there is one.
func (s *Store) withRow(k layout.ShardKey, change func(r *row)) {
	s.table.mu.RLock()
	i, ok := s.table.slots[k]
	s.table.mu.RUnlock()
	if ok {
		s.table.update(i, change)
	}
}

// sweep brings the data files in line with the index: files without a shard go
// (a create or delete was cut short), a shard without a file can't tell, and
// bytes that no stripe covers (units that were never synced) are cut away, so
// that they read as zeros.
func (s *Store) sweep() error {
	names, err := s.data.List(shardDir)
	if err != nil {
		return err
	}
	present, removed := map[layout.ShardKey]bool{}, false
	for _, name := range names {
		k, g, ok := format.ParseShardFileName(name)
		if !ok {
			continue
		}
		if i, known := s.table.slots[k]; known && s.table.row(i).generation == g {
			present[k] = true
			continue
		}
		removed = true
		if err := s.data.Remove(shardDir + "/" + name); err != nil {
			return err
		}
	}
	if removed {
		if err := s.data.SyncDir(shardDir); err != nil {
			return err
		}
	}
	return s.sweepShards(present)
}

func (s *Store) sweepShards(present map[layout.ShardKey]bool) error {
	for k, i := range s.table.slots {
		r := s.table.row(i)
		switch {
		case !present[k]:
			s.logger.Error("a data file is missing", "segment", k.Segment, "shard", k.Shard)
			s.table.update(i, func(r *row) { r.flags |= format.FlagDoubtful })
		case r.state == format.ShardFinalized && r.flags&format.FlagUntrimmed == 0, r.flags&format.FlagDoubtful != 0:
		default:
			if err := s.clean(i, &r); err != nil && errs.KindOf(typed(err, "")) != errs.NoSpace {
				return err
			}
		}
	}
	return nil
}

// clean cuts away what no stripe covers in one data file.
func (s *Store) clean(i slot, r *row) error {
	name := fileName{r.key(), r.generation}
	if r.state == format.ShardFinalized {
		if err := s.truncate(name, layout.ShardOffset(r.end)*layout.BlockSize); err != nil {
			return err
		}
		s.table.update(i, func(r *row) { r.flags &^= format.FlagUntrimmed })
		return nil // the record's flag stays until it is next written; trimming twice does no harm
	}
	file, err := s.files.acquire(name)
	if err != nil {
		return err
	}
	defer s.files.release(file)
	size, err := file.Size()
	if err != nil || size == 0 {
		return err
	}
	end := layout.ShardOffset(0)
	err = s.index.stripesOf(r.key(), func(offset layout.ShardOffset, seq layout.Seq, header []byte) error {
		v, err := checkRecord(r.key(), offset, seq, header)
		if err != nil {
			return errSkip // its unit's extent is unknown: leave the file alone
		}
		if v.Unit == 0 {
			return nil
		}
		gap := min(int64(v.Offset), size) - int64(end)
		end = v.End()
		if gap > 0 {
			return file.PunchHole(int64(v.Offset)-gap, gap)
		}
		return nil
	})
	if err == nil && size > int64(end) {
		err = file.Truncate(int64(end))
	}
	if errors.Is(err, errSkip) {
		return nil
	}
	return err
}

var errSkip = errors.New("skip")
