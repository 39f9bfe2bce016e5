package store

import (
	"cmp"
	"slices"

	"golang.org/x/sync/errgroup"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/frame"
)

// maxParallelSyncs bounds the fdatasyncs of one Sync that run at a time.
const maxParallelSyncs = 8

// Sync makes durable all units of the shards whose Append returned before.
// Callers share the work: of one shard by queueing behind each other, of one log
// by being written as one group, of the index by Pebble's group commit.
//
// Refusals: IncarnationMoved (the device restarted: un-synced units are gone),
// StaleEpoch, NotHere, StaleGeneration, NoSpace (nothing is lost: try again).
func (s *Store) Sync(epoch layout.Epoch, incarnation layout.Incarnation, refs []frame.ShardRef) error {
	if err := s.dev.err(); err != nil {
		return errs.Wrap(err, "sync")
	}
	if now := s.Incarnation(); incarnation != now && !planted.Is(planted.IncarnationIgnored) {
		return errs.New(errs.IncarnationMoved, "sync", "the device is in incarnation %d, not %d", now, incarnation)
	}
	shards, err := s.pinSorted(refs)
	if err == nil {
		err = s.syncAt(epoch, shards)
	}
	for _, sh := range shards {
		s.table.unpin(sh)
	}
	return typed(err, "sync")
}

// pinSorted pins each shard once, in the order of keys.
func (s *Store) pinSorted(refs []frame.ShardRef) ([]*shard, error) {
	shards := make([]*shard, 0, len(refs))
	for _, ref := range refs {
		sh, err := s.table.pin(ref)
		if err != nil {
			return shards, err
		}
		shards = append(shards, sh)
	}
	if len(shards) < 2 {
		return shards, nil
	}
	slices.SortFunc(shards, func(a, b *shard) int {
		return cmp.Or(cmp.Compare(a.ref.Segment, b.ref.Segment), cmp.Compare(a.ref.Shard, b.ref.Shard))
	})
	return slices.CompactFunc(shards, func(a, b *shard) bool {
		if a == b {
			s.table.unpin(b)
		}
		return a == b
	}), nil
}

// syncAt is syncShards for a writer: the fence is looked at before and after.
func (s *Store) syncAt(epoch layout.Epoch, shards []*shard) error {
	if err := s.checkEpoch(epoch, shards); err != nil {
		return err
	}
	if err := s.syncShards(shards); err != nil {
		return err
	}
	return s.checkEpoch(epoch, shards)
}

func (s *Store) checkEpoch(epoch layout.Epoch, shards []*shard) error {
	for _, sh := range shards {
		if r := s.table.row(sh.slot); epoch < r.minEpoch() {
			return staleEpoch(&r, epoch)
		}
	}
	return nil
}

// syncShards makes what was written durable. shards are pinned, sorted and
// differ from each other.
func (s *Store) syncShards(shards []*shard) error {
	for i, sh := range shards {
		if err := sh.enter(); err != nil {
			leaveAll(shards[:i])
			return err
		}
	}
	defer leaveAll(shards)
	for _, sh := range shards {
		sh.syncMu.Lock()
		defer sh.syncMu.Unlock()
	}
	work := make([]syncWork, len(shards))
	for i, sh := range shards {
		work[i] = sh.unsynced()
	}
	if err := s.syncLarge(work); err != nil {
		return err
	}
	return s.syncSmall(work)
}

func leaveAll(shards []*shard) {
	for _, sh := range shards {
		sh.leave()
	}
}

// syncWork is what one shard has to sync.
type syncWork struct {
	sh    *shard
	file  *handle // nil: nothing in the data file
	large []entry
	small []*record
}

// unsynced takes a shard's work. The caller holds syncMu, so that what is taken
// is nobody else's.
func (sh *shard) unsynced() syncWork {
	w := syncWork{sh: sh}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	w.file, sh.dirty = sh.dirty, nil
	for i := range sh.entries {
		switch e := &sh.entries[i]; {
		case e.state != written:
		case e.record != nil:
			w.small = append(w.small, e.record)
		default:
			w.large = append(w.large, *e)
		}
	}
	return w
}

// syncLarge: data first, then the records in one synced batch (I1).
func (s *Store) syncLarge(work []syncWork) error {
	var g errgroup.Group
	g.SetLimit(maxParallelSyncs)
	any := false
	for i := range work {
		if w := &work[i]; w.file != nil {
			any = any || len(w.large) > 0
			if len(work) == 1 {
				return s.syncOne(w)
			}
			g.Go(func() error { return s.syncFile(w.file) })
		}
	}
	if err := g.Wait(); err != nil || !any {
		return err
	}
	return s.indexLarge(work)
}

// syncOne is syncLarge for one shard, without goroutines.
func (s *Store) syncOne(w *syncWork) error {
	if err := s.syncFile(w.file); err != nil || len(w.large) == 0 {
		return err
	}
	return s.indexLarge([]syncWork{*w})
}

func (s *Store) syncFile(f *handle) error {
	defer s.files.release(f)
	if planted.Is(planted.AckBeforeFsync) {
		return nil
	}
	var err error
	s.opts.Queue.Turn(0, func() { err = f.Sync() }) // what was written directly is on the device
	return err
}

func (s *Store) indexLarge(work []syncWork) error {
	b := s.batch()
	for i := range work {
		for j := range work[i].large {
			e := &work[i].large[j]
			if err := b.Set(format.AppendStripeKey(nil, format.KindStripe, work[i].sh.ref.ShardKey, e.offset, e.seq), e.large, nil); err != nil {
				return err
			}
		}
	}
	if err := s.commit(b); err != nil {
		return err
	}
	for i := range work {
		s.indexed(work[i].sh, func(e *entry) bool { return e.state == written && e.record == nil && has(work[i].large, e) })
	}
	return nil
}

// has tells whether a sorted list holds an entry.
func has(list []entry, e *entry) bool {
	_, found := slices.BinarySearchFunc(list, e, func(a entry, b *entry) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.seq, b.seq))
	})
	return found
}

// indexed forgets entries that the index has by now, and counts them.
func (s *Store) indexed(sh *shard, moved func(e *entry) bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var blocks, stripes uint32
	sh.drop(func(e *entry) bool {
		if !moved(e) {
			return false
		}
		blocks += e.unit / layout.BlockSize
		stripes++
		if e.end() >= sh.tailEnd {
			sh.tailEnd, sh.tailSeq = e.end(), max(sh.tailSeq, e.seq)
		}
		s.giveBack(e)
		return true
	})
	s.table.update(sh.slot, func(r *row) {
		r.stored += blocks
		r.stripes += stripes
	})
}

// giveBack gives the memory of a small entry back that is dropped.
func (s *Store) giveBack(e *entry) {
	if e.record == nil {
		return
	}
	if e.state == written {
		s.pending.Add(-e.record.length())
	}
	s.pool.put(e.record)
}

// syncSmall writes what waits in memory to the log, one group for all shards.
func (s *Store) syncSmall(work []syncWork) error {
	var records []*record
	for i := range work {
		if len(work) == 1 {
			records = work[i].small
		} else {
			records = append(records, work[i].small...)
		}
	}
	err := s.log.commit(records)
	for i := range work {
		if len(work[i].small) > 0 {
			s.nowLogged(work[i].sh, work[i].small)
		}
	}
	return err
}

// nowLogged notes where entries are in the log, those that got there. The units
// stay in memory as well until they are moved: reads of what was just written and
// the move itself then need not read the log.
func (s *Store) nowLogged(sh *shard, records []*record) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range records {
		if r.file == nil {
			continue // the group failed before
		}
		i, found := sh.search(r.head.Offset, r.head.Seq)
		if !found || sh.entries[i].record != r {
			panic("an entry vanished during its sync")
		}
		e := &sh.entries[i]
		e.state, e.file, e.pos, e.lsn = logged, r.file, r.pos, r.head.LSN
		s.log.publish(r.file)
		s.pending.Add(-r.length())
	}
}
