package store

import (
	"strake/chunkd/format"
	"strake/internal/layout"

	"github.com/cockroachdb/pebble/v2"
)

// settle brings all that a shard holds to its data file and the index: data
// written, fdatasync, then one synced batch with the records and what more adds.
// The caller is alone in the shard.
func (s *Store) settle(sh *shard, more func(b *pebble.Batch) error) error {
	file, err := s.files.acquire(fileName{sh.ref.ShardKey, sh.ref.Generation})
	if err != nil {
		return err
	}
	defer s.files.release(file)
	b := s.batch()
	lost, err := s.settleEntries(sh, file, b)
	if err == nil {
		err = s.syncDirty(sh, file)
	}
	if err == nil {
		err = more(b)
	}
	if err != nil {
		_ = b.Close()
		return err
	}
	if err := s.commit(b); err != nil {
		return err
	}
	s.indexed(sh, func(*entry) bool { return true })
	s.discount(sh, lost)
	return nil
}

// settleEntries writes what is in memory or in the log to the data file and adds
// all records to the batch.
func (s *Store) settleEntries(sh *shard, file *handle, b *pebble.Batch) (lost []entry, err error) {
	var buf []byte
	w := runs{file: file, own: s.opts.Queue, buf: &buf}
	for i := range sh.entries { // nobody else is inside: no lock
		e := &sh.entries[i]
		header, payload := e.large, []byte(nil)
		if header == nil {
			var damage error
			if header, payload, damage = s.smallUnit(e); damage != nil {
				lost = append(lost, *e)
				if err := s.putDoubt(sh, b, e, damage); err != nil {
					return nil, err
				}
				continue
			}
		}
		if err := w.add(int64(e.offset), payload); err != nil {
			return nil, err
		}
		if err := b.Set(format.AppendStripeKey(nil, format.KindStripe, sh.ref.ShardKey, e.offset, e.seq), header, nil); err != nil {
			return nil, err
		}
	}
	return lost, w.flush()
}

// syncDirty syncs the data file when there is anything to sync.
func (s *Store) syncDirty(sh *shard, file *handle) error {
	if len(sh.entries) == 0 && sh.dirty == nil {
		return nil
	}
	var err error
	s.opts.Queue.Turn(0, func() { err = file.Sync() })
	if err != nil {
		return err
	}
	if sh.dirty != nil {
		s.files.release(sh.dirty)
		sh.dirty = nil
	}
	return nil
}

// loadShard reads a shard's record from the index.
func (s *Store) loadShard(key layout.ShardKey) (format.Shard, error) {
	v, ok, err := s.index.get(format.AppendShardKey(nil, format.KindShard, key))
	if err != nil {
		return format.Shard{}, err
	}
	if !ok {
		return format.Shard{}, goneFromIndex(key)
	}
	return format.DecodeShard(v)
}
