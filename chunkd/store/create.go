package store

import (
	"errors"
	"io/fs"
	"sync"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
)

// Create makes a shard and accounts for its full length, durably. An equal
// repeat succeeds; one that differs in anything is a Conflict, and so is a shard
// that was deleted here in this generation or a later one. NoSpace is told
// before anything is written.
func (s *Store) Create(spec ShardSpec) error {
	if err := s.create(&spec); err != nil {
		return typed(err, "create shard %v", spec.Key)
	}
	return nil
}

func (s *Store) create(spec *ShardSpec) error {
	if err := s.dev.err(); err != nil {
		return err
	}
	if err := s.checkSpec(spec); err != nil {
		return err
	}
	// Held across the I/O so that two creates of one shard can't both pass; others
	// rarely share the lock, and creates are made ahead of need.
	lock := s.creatingLock(spec.Key)
	lock.Lock()
	defer lock.Unlock()
	if exists, err := s.sameSpec(spec); exists || err != nil {
		return err
	}
	if err := s.checkTombstone(spec); err != nil {
		return err
	}
	if err := s.reserve(int64(spec.Length), spec.Purpose); err != nil {
		return err
	}
	err := s.writeShard(spec)
	s.unreserve(int64(spec.Length)) // the row takes over the charge
	return err
}

func (s *Store) creatingLock(k layout.ShardKey) *sync.Mutex {
	return &s.creating[(uint64(k.Segment)*31+uint64(k.Shard))%uint64(len(s.creating))]
}

func (s *Store) checkSpec(spec *ShardSpec) error {
	switch {
	case spec.Cell != s.super.Load().Cell:
		return errs.New(errs.WrongCell, "", "the shard is of cell %x", uint64(spec.Cell))
	case !spec.Geometry.Valid() || int(spec.Key.Shard) >= spec.Geometry.Shards(),
		spec.Key.Segment == 0, spec.Volume == 0, spec.Generation == 0, spec.Epoch == 0,
		spec.Length <= 0, spec.Length > layout.MaxShardLength, spec.Length%layout.BlockSize != 0:
		return errs.New(errs.InvalidArgument, "", "impossible specification %+v", *spec)
	}
	return nil
}

// sameSpec tells whether the shard exists, and a Conflict when it differs.
func (s *Store) sameSpec(spec *ShardSpec) (exists bool, err error) {
	s.table.mu.RLock()
	i, exists := s.table.slots[spec.Key]
	s.table.mu.RUnlock()
	if !exists {
		return false, nil
	}
	r := s.table.row(i)
	if r.generation != spec.Generation || r.volume != spec.Volume || r.epoch != spec.Epoch || r.geometry != spec.Geometry ||
		int64(r.length)*layout.BlockSize != int64(spec.Length) || r.flags&format.FlagMap != 0 != spec.Map {
		return true, errs.New(errs.Conflict, "", "it exists with another specification")
	}
	return true, nil
}

// checkTombstone refuses a shard that was deleted. A higher generation is
// another placement of the shard, with a file of its own, and may come here.
func (s *Store) checkTombstone(spec *ShardSpec) error {
	g, ok, err := s.tombstone(spec.Key)
	if err != nil || !ok || spec.Generation > g {
		return err
	}
	return errs.New(errs.Conflict, "", "generation %d was deleted here and never comes back", spec.Generation)
}

func (s *Store) tombstone(key layout.ShardKey) (layout.Generation, bool, error) {
	v, ok, err := s.index.get(format.AppendShardKey(nil, format.KindTombstone, key))
	if err != nil || !ok {
		return 0, false, err
	}
	g, err := format.DecodeTombstone(v)
	return g, true, err
}

// writeShard makes the data file, durably, and then the record that promises it.
// A file without a record is removed by the next Open.
func (s *Store) writeShard(spec *ShardSpec) error {
	path := fileName{spec.Key, spec.Generation}.path()
	if err := s.data.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // left by a create that failed
	}
	f, err := s.data.Create(path)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.data.SyncDir(shardDir); err != nil {
		return err
	}
	rec := format.Shard{Key: spec.Key, Generation: spec.Generation, State: format.ShardOpen, Geometry: spec.Geometry,
		Cell: spec.Cell, Volume: spec.Volume, Epoch: spec.Epoch, Length: spec.Length}
	if spec.Map {
		rec.Flags |= format.FlagMap
	}
	b := s.batch()
	if err := putShard(b, &rec); err != nil {
		return err
	}
	if err := s.commit(b); err != nil {
		return err
	}
	s.table.insert(rowOf(&rec))
	return nil
}

// rowOf gives the row of a record; what an open shard stores is counted apart.
func rowOf(rec *format.Shard) row {
	return row{
		volume: rec.Volume, epoch: rec.Epoch, fence: rec.Fence, segment: rec.Key.Segment, shard: rec.Key.Shard,
		length: uint32(rec.Length / layout.BlockSize), end: uint32(rec.Seal.Length / layout.BlockSize),
		stored: uint32(rec.Stored / layout.BlockSize), stripes: rec.Seal.Count, generation: rec.Generation,
		geometry: rec.Geometry, state: rec.State, flags: rec.Flags, fenced: rec.Fence != 0,
	}
}

func goneFromIndex(key layout.ShardKey) error {
	return errs.New(errs.Corrupt, "read index", "the record of shard %v is missing", key)
}
