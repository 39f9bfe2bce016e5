package store

import (
	"strake/internal/errs"
	"strake/internal/layout"
)

// reservePercent of a device is kept from new shards: for cleaning, rebuild, the
// index, and deletes that must always work.
const reservePercent = 5

// Usage tells the device's account. Free follows the disk's own count, less what
// is promised to shards and not yet written, less the reserve; so it is right
// even when something else fills the disk.
func (s *Store) Usage() Usage {
	s.table.mu.RLock()
	charged, stored, shards := s.table.charged, s.table.stored, len(s.table.slots)
	s.table.mu.RUnlock()
	u := Usage{Stored: uint64(stored), Reserved: uint64(charged), Shards: uint64(shards)}
	if disk, err := s.data.Usage(); err == nil {
		u.Total = disk.Total
		u.Free = uint64(max(0, int64(disk.Free)-(charged-stored)-int64(disk.Total/100*reservePercent)))
	}
	return u
}

// reserve charges the account, or refuses.
func (s *Store) reserve(n int64) error {
	disk, err := s.data.Usage()
	if err != nil {
		return err
	}
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if free := int64(disk.Free) - (t.charged - t.stored) - int64(disk.Total/100*reservePercent); n > free {
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
