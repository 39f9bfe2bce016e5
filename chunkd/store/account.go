package store

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// Usage tells the device's account. Free follows the disk's own count, less what
// is promised to shards and not yet written, less the reserve; so it is right
// even when something else fills the disk.
func (s *Store) Usage() Usage {
	before := s.table.account()
	disk, err := s.data.Usage()
	after := s.table.account()
	u := Usage{Stored: uint64(after.stored), Reserved: uint64(after.charged), Shards: uint64(after.shards)}
	if err != nil {
		return u
	}
	u.Total = disk.Total
	u.Other = uint64(max(0, int64(disk.Total-min(disk.Free, disk.Total))-after.stored-(after.removed-before.removed)))
	u.Free = uint64(max(0, before.free(disk.Free, after)-int64(layout.ForData.Kept(disk.Total))))
	return u
}

// account is the table's account at one moment.
type account struct {
	charged, stored int64
	removed         int64 // bytes of stored units that were taken out, ever
	shards          int
}

// free is what is free for new shards, the reserve included, when the disk said so
// much between two moments. It is never more than there is: what was written in
// between is still counted as promised, and what was deleted as not yet gone.
func (before account) free(disk uint64, now account) int64 {
	return int64(disk) - (now.charged - before.stored) - (now.removed - before.removed)
}

// account reads the account.
func (t *table) account() account {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sums()
}

// sums is account with mu held.
func (t *table) sums() account {
	return account{charged: t.charged, stored: t.stored, removed: t.removed, shards: len(t.slots)}
}

// reserve charges the account, or refuses: the purpose leaves a part of the device
// free.
func (s *Store) reserve(n int64, purpose layout.Purpose) error {
	before := s.table.account()
	disk, err := s.data.Usage()
	if err != nil {
		return err
	}
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if free := before.free(disk.Free, t.sums()) - int64(purpose.Kept(disk.Total)); n > free {
		return errs.New(errs.NoSpace, "", "the shard wants %d bytes, %d are free for new shards", n, max(0, free)).
			WithHint("delete something, or add a device")
	}
	t.charged += n
	return nil
}

func (s *Store) unreserve(n int64) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.charged -= n
}

func (r *row) stateName() State { return State(r.state) }

func (r *row) lengthBytes() layout.ShardOffset {
	return layout.ShardOffset(r.length) * layout.BlockSize
}
