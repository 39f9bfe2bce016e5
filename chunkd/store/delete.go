package store

import (
	"errors"
	"io/fs"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/proto/frame"
)

// Delete forgets a shard for ever: a synced tombstone in place of all its
// records, then the file is unlinked and the folder synced. It needs no space of
// clients. A repeat succeeds. NotHere: never created here; it leaves a tombstone
// all the same, because the call that creates it may still be on its way, and
// nobody would delete what it makes. StaleGeneration: another generation is here.
func (s *Store) Delete(ref frame.ShardRef) error {
	if err := s.delete(ref); err != nil {
		return typed(err, "delete shard %v", ref.ShardKey)
	}
	return nil
}

// Discard removes a shard that no placement ever named: one that a rebuild made
// and that came to nothing. It leaves no tombstone, since the same rebuild may be
// begun again. A repeat succeeds.
func (s *Store) Discard(ref frame.ShardRef) error {
	err := s.remove(ref, false)
	if errs.KindOf(err) == errs.NotHere {
		return nil
	}
	return typed(err, "discard shard %v", ref.ShardKey)
}

func (s *Store) delete(ref frame.ShardRef) error { return s.remove(ref, true) }

func (s *Store) remove(ref frame.ShardRef, tombstone bool) error {
	if err := s.dev.err(); err != nil {
		return err
	}
	sh, err := s.table.pin(ref)
	if err != nil && !tombstone {
		return err
	}
	if err != nil {
		return s.forbid(ref, err)
	}
	defer s.table.unpin(sh)
	if err := sh.enterAlone(func() error { return nil }); err != nil {
		return nil // deleted meanwhile
	}
	defer s.kick()
	defer sh.leaveAlone()
	if err := s.bury(ref, tombstone); err != nil {
		return err
	}
	s.forget(sh)
	return s.unlink(fileName{ref.ShardKey, ref.Generation})
}

// forbid deals with a shard that is not here, for the reason why: it never comes.
func (s *Store) forbid(ref frame.ShardRef, why error) error {
	lock := s.creatingLock(ref.ShardKey)
	lock.Lock()
	defer lock.Unlock()
	if g, ok, err := s.tombstone(ref.ShardKey); err != nil || ok && g >= ref.Generation {
		return err
	}
	switch _, _, err := s.table.find(ref); {
	case err == nil: // created meanwhile
		return errs.New(errs.Busy, "", "shard %v was just created", ref.ShardKey).WithHint("delete it again")
	case errs.KindOf(err) != errs.NotHere:
		return err
	}
	if err := s.bury(ref, true); err != nil {
		return err
	}
	return why
}

// bury takes the shard's records away, for a tombstone where one is wanted.
func (s *Store) bury(ref frame.ShardRef, tombstone bool) (err error) {
	k := ref.ShardKey
	b := s.batch()
	if tombstone {
		err = b.Set(format.AppendShardKey(nil, format.KindTombstone, k), format.AppendTombstone(nil, ref.Generation), nil)
	}
	err = errors.Join(err,
		b.Delete(format.AppendShardKey(nil, format.KindShard, k), nil),
		b.DeleteRange(format.AppendShardKey(nil, format.KindStripe, k), format.AppendKeysEnd(nil, format.KindStripe, k), nil),
		b.DeleteRange(format.AppendShardKey(nil, format.KindDoubt, k), format.AppendKeysEnd(nil, format.KindDoubt, k), nil))
	if err != nil {
		return err
	}
	return s.commit(b)
}

// forget drops what memory holds of a deleted shard.
func (s *Store) forget(sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.gone = true
	sh.drop(func(e *entry) bool {
		s.giveBack(e)
		return true
	})
	if sh.dirty != nil {
		s.files.release(sh.dirty)
		sh.dirty = nil
	}
	s.table.remove(sh.slot)
}

// unlink removes a data file. Should it fail, the next Open removes it: the
// tombstone stands.
func (s *Store) unlink(name fileName) error {
	s.files.forget(name)
	if err := s.data.Remove(name.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.data.SyncDir(shardDir)
}
