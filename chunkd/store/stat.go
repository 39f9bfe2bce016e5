package store

import (
	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// Stat tells a shard's properties and fill.
func (s *Store) Stat(ref frame.ShardRef) (Stat, error) {
	if err := s.dev.err(); err != nil {
		return Stat{}, errs.Wrap(err, "stat shard %v", ref.ShardKey)
	}
	i, r, err := s.table.find(ref)
	if err != nil {
		return Stat{}, errs.Wrap(err, "stat shard %v", ref.ShardKey)
	}
	return s.stat(i, &r), nil
}

// Each visits all shards, in no order, until visit returns false. Shards that
// come or go meanwhile may be visited or not.
func (s *Store) Each(visit func(Stat) bool) {
	for i := range s.table.size() {
		r := s.table.row(slot(i))
		if r.state != 0 && !visit(s.stat(slot(i), &r)) {
			return
		}
	}
}

func (s *Store) stat(i slot, r *row) Stat {
	st := Stat{
		Ref: r.ref(), Volume: r.volume, Epoch: r.epoch, Fence: r.fence, Geometry: r.geometry, Length: r.lengthBytes(),
		Stored: int64(r.stored) * layout.BlockSize, Stripes: r.stripes, State: State(r.state), Map: r.flags&format.FlagMap != 0,
	}
	if r.state == format.ShardFinalized {
		st.Length = layout.ShardOffset(r.end) * layout.BlockSize
	}
	if sh := s.table.pinActive(i, st.Ref); sh != nil {
		defer s.table.unpin(sh)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		for j := range sh.entries {
			if e := &sh.entries[j]; e.state == logged {
				st.Stored += int64(e.unit)
				st.Stripes++
			}
		}
	}
	return st
}

func (r *row) ref() frame.ShardRef {
	return frame.ShardRef{ShardKey: r.key(), Generation: r.generation}
}

// size is the number of slots ever given out.
func (t *table) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.used
}
