package store

import (
	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/frame"
)

// Fence refuses epochs below the given one from now on and for ever, makes
// durable what the shard has, and then lists it. In this order: newcomers of
// lower epochs are refused; what is in flight ends; data is synced; records and
// fence go to the index in one synced batch; the list is read back from the
// disk and verified. So nothing can come to the list after it was given.
//
// A stripe that is not in the list was never durable here. One with an error is
// one that the shard can't tell of. An error of the whole call means that it
// can't tell of any. A repeat gives the list again.
func (s *Store) Fence(ref frame.ShardRef, epoch layout.Epoch) ([]Fenced, error) {
	if s.leaseOver(ref.ShardKey) {
		return s.listUnfenced(ref)
	}
	list, err := s.fence(ref, epoch)
	if err != nil {
		return nil, typed(err, "fence shard %v at epoch %d", ref.ShardKey, epoch)
	}
	return list, nil
}

func (s *Store) fence(ref frame.ShardRef, epoch layout.Epoch) ([]Fenced, error) {
	if err := s.dev.err(); err != nil {
		return nil, err
	}
	sh, err := s.table.pin(ref)
	if err != nil {
		return nil, err
	}
	defer s.table.unpin(sh)
	if err := sh.enterAlone(func() error { return s.raiseFence(sh, epoch) }); err != nil {
		return nil, err
	}
	defer s.kick()
	defer sh.leaveAlone()
	err = s.settle(sh, func(b *pebble.Batch) error { return s.putFence(b, sh, epoch) })
	if err != nil {
		return nil, err
	}
	s.table.update(sh.slot, func(r *row) {
		r.fenced = true
		if r.state == format.ShardOpen {
			r.state = format.ShardFenced
		}
	})
	if r := s.table.row(sh.slot); r.flags&format.FlagDoubtful != 0 {
		return nil, errs.New(errs.Corrupt, "", "stripes that were durable may be missing: the shard can't tell").
			WithHint("the shard is rebuilt after recovery from the others")
	}
	return s.listFenced(sh)
}

// raiseFence refuses lower epochs, in memory. Called with sh.mu held.
func (s *Store) raiseFence(sh *shard, epoch layout.Epoch) error {
	r := s.table.row(sh.slot)
	if epoch < r.minEpoch() || epoch == 0 {
		return staleEpoch(&r, epoch)
	}
	s.table.update(sh.slot, func(r *row) {
		r.fenced = r.fenced && r.fence == epoch
		r.fence = epoch
	})
	return nil
}

func (s *Store) putFence(b *pebble.Batch, sh *shard, epoch layout.Epoch) error {
	if planted.Is(planted.FenceNotPersisted) {
		return nil
	}
	rec, err := s.loadShard(sh.ref.ShardKey)
	if err != nil {
		return err
	}
	rec.Fence = epoch
	rec.Flags |= s.table.row(sh.slot).flags & format.FlagDoubtful
	if rec.State == format.ShardOpen {
		rec.State = format.ShardFenced
	}
	return putShard(b, &rec)
}

// CheckRecovery tells whether the shard is fenced, durably, at exactly this
// epoch: only then may a recovery read or list it.
func (s *Store) CheckRecovery(ref frame.ShardRef, epoch layout.Epoch) error {
	const op = "recover from shard %v"
	_, r, err := s.table.find(ref)
	switch {
	case err != nil:
		return errs.Wrap(err, op, ref.ShardKey)
	case epoch < r.fence && !planted.Is(planted.FenceNotOnRecoveryReads):
		return errs.Wrap(staleEpoch(&r, epoch), op, ref.ShardKey)
	case planted.Is(planted.FenceNotOnRecoveryReads):
	case r.fence != epoch || !r.fenced:
		return errs.Wrap(errs.New(errs.Conflict, "", "it is fenced at epoch %d, not %d", r.fence, epoch).
			WithHint("fence it first"), op, ref.ShardKey)
	}
	return nil
}

// CheckReader refuses, with StaleEpoch, a reader under a writer's token of an
// epoch below the fence; 0 is a reader without such a token.
func (s *Store) CheckReader(ref frame.ShardRef, epoch layout.Epoch) error {
	_, r, err := s.table.find(ref)
	if err == nil && epoch != 0 && epoch < r.fence {
		err = staleEpoch(&r, epoch)
	}
	if err != nil {
		return errs.Wrap(err, "read shard %v", ref.ShardKey)
	}
	return nil
}

// listFenced reads all stripes back and verifies them. The caller is alone in
// the shard, and all it has is in the index.
func (s *Store) listFenced(sh *shard) (list []Fenced, err error) {
	file, err := s.files.acquire(fileName{sh.ref.ShardKey, sh.ref.Generation})
	if err != nil {
		return nil, err
	}
	defer s.files.release(file)
	var unit []byte
	err = s.index.stripesOf(sh.ref.ShardKey, func(offset layout.ShardOffset, seq layout.Seq, header []byte) error {
		f := Fenced{Seq: seq}
		v, err := checkRecord(sh.ref.ShardKey, offset, seq, header)
		if err == nil {
			f.Header = append([]byte(nil), header...)
			unit, err = readVerified(file, &v, unit)
		}
		if errs.KindOf(err) == errs.Version {
			return err
		}
		if err != nil && planted.Is(planted.NeverForCorrupt) {
			return nil
		}
		f.Err = errs.As(err, errs.Corrupt, "stripe %d of shard %v", seq, sh.ref.ShardKey)
		list = append(list, f)
		return s.dev.err()
	})
	if err != nil {
		return nil, err
	}
	return s.addDoubts(sh, list)
}

// readVerified reads a unit into b, grown as needed, and checks it.
func readVerified(file *handle, v *format.View, b []byte) ([]byte, error) {
	if cap(b) < int(v.Unit) {
		b = make([]byte, v.Unit)
	}
	b = b[:v.Unit]
	if len(b) == 0 {
		return b, nil
	}
	if n, err := file.ReadAt(b, int64(v.Offset)); err != nil && n < len(b) {
		return b, err
	}
	return b, v.Verify(b)
}
