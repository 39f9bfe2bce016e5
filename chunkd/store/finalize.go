package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// Finalize ends a shard at the sealed list: the stripes up to last must match
// the seal's count, digest and length. Then what lies beyond is dropped and
// truncated, durably, and the shard is immutable and a source for others. A list
// that does not match makes the shard Incomplete, durably, and the error is
// Corrupt: it is to be rebuilt. A repeat succeeds; with another seal it is a
// Conflict.
func (s *Store) Finalize(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error {
	if err := s.finalize(ref, last, seal); err != nil {
		return typed(err, "finalize shard %v", ref.ShardKey)
	}
	return nil
}

func (s *Store) finalize(ref frame.ShardRef, last layout.Seq, seal stripe.ShardSeal) error {
	if err := s.dev.err(); err != nil {
		return err
	}
	sh, err := s.table.pin(ref)
	if err != nil {
		return err
	}
	defer s.table.unpin(sh)
	if err := sh.enterAlone(func() error { return nil }); err != nil {
		return err
	}
	defer s.kick()
	defer sh.leaveAlone()
	rec, err := s.loadShard(ref.ShardKey)
	if err != nil {
		return err
	}
	switch rec.State {
	case format.ShardFinalized:
		if rec.Last != last || rec.Seal != seal {
			return errs.New(errs.Conflict, "", "it was finalized at seq %d with another seal", rec.Last)
		}
		return s.trim(&rec, sh)
	case format.ShardIncomplete:
		return incomplete("it did not match its seal before")
	}
	if err := s.settle(sh, func(*pebble.Batch) error { return nil }); err != nil {
		return err
	}
	return s.match(sh, &rec, last, seal)
}

// match compares the list with the seal and records the outcome.
func (s *Store) match(sh *shard, rec *format.Shard, last layout.Seq, seal stripe.ShardSeal) error {
	own, stored, beyond, err := s.sumUp(sh.ref.ShardKey, last)
	if dead := s.dev.err(); dead != nil {
		return dead
	}
	if err == nil && own != seal {
		err = errs.New(errs.Corrupt, "", "%d stripes, %d bytes up to seq %d; the seal says %d and %d", own.Count, own.Length, last, seal.Count, seal.Length)
	}
	if err != nil {
		rec.State = format.ShardIncomplete
		if e := s.saveState(sh, rec); e != nil {
			return e
		}
		return errs.As(err, errs.Corrupt, "compare with the seal")
	}
	rec.State, rec.Last, rec.Seal, rec.Stored = format.ShardFinalized, last, seal, stored
	rec.Flags = rec.Flags&^format.FlagDoubtful | format.FlagUntrimmed // the digest proves the list
	b := s.batch()
	k := sh.ref.ShardKey
	err = errors.Join(putShard(b, rec),
		b.DeleteRange(format.AppendShardKey(nil, format.KindDoubt, k), format.AppendKeysEnd(nil, format.KindDoubt, k), nil))
	if beyond != nil {
		err = errors.Join(err, b.DeleteRange(beyond, format.AppendKeysEnd(nil, format.KindStripe, k), nil))
	}
	if err != nil {
		return err
	}
	if err := s.commit(b); err != nil {
		return err
	}
	s.table.update(sh.slot, func(r *row) {
		doubted := rowOf(rec)
		doubted.fenced = r.fenced
		*r = doubted
	})
	return s.trim(rec, sh)
}

func incomplete(why string) error {
	return errs.New(errs.Corrupt, "", "the shard is incomplete: %s", why).WithHint("it is rebuilt from the other shards")
}

// saveState writes a shard's record and takes its state over into the row.
func (s *Store) saveState(sh *shard, rec *format.Shard) error {
	b := s.batch()
	if err := putShard(b, rec); err != nil {
		return err
	}
	if err := s.commit(b); err != nil {
		return err
	}
	s.table.update(sh.slot, func(r *row) { r.state, r.flags = rec.State, rec.Flags })
	return nil
}

// sumUp seals the own list up to last. beyond is the key of the first stripe
// after it, nil when there is none.
func (s *Store) sumUp(key layout.ShardKey, last layout.Seq) (own stripe.ShardSeal, stored int64, beyond []byte, err error) {
	err = s.index.stripesOf(key, func(offset layout.ShardOffset, seq layout.Seq, header []byte) error {
		if beyond != nil {
			return nil
		}
		if seq > last {
			beyond = format.AppendStripeKey(nil, format.KindStripe, key, offset, seq)
			return nil
		}
		if _, err := checkRecord(key, offset, seq, header); err != nil {
			return err
		}
		h, _, err := stripe.Decode(header)
		if err != nil {
			return err
		}
		own.Add(h)
		stored += int64(h.Shape.Unit)
		return nil
	})
	return own, stored, beyond, err
}

// trim cuts what lies beyond the seal off the data file, durably, and clears the
// flag that asked for it. A crash before that leaves the flag: Open trims again.
func (s *Store) trim(rec *format.Shard, sh *shard) error {
	if rec.Flags&format.FlagUntrimmed == 0 {
		return nil
	}
	if err := s.truncate(fileName{rec.Key, rec.Generation}, rec.Seal.Length); err != nil {
		return err
	}
	rec.Flags &^= format.FlagUntrimmed
	return s.saveState(sh, rec)
}

func (s *Store) truncate(name fileName, length layout.ShardOffset) error {
	file, err := s.files.acquire(name)
	if err != nil {
		return err
	}
	defer s.files.release(file)
	if err := file.Truncate(int64(length)); err != nil {
		return err
	}
	return file.Sync()
}
