package store

import (
	"cmp"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"strake/chunkd/format"
	"strake/internal/layout"
)

// mover empties full log files in the background, one at a time.
func (s *Store) mover() {
	defer s.done.Done()
	defer s.log.halt()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		}
		if err := s.moveFull(); err != nil && s.dev.err() == nil {
			s.logger.Warn("the append log can't be emptied", "err", err)
		}
	}
}

// kick asks the mover for a move.
func (s *Store) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// moveFull moves full log files, oldest first, until none is left.
func (s *Store) moveFull() error {
	s.moveMu.Lock()
	defer s.moveMu.Unlock()
	for {
		f := s.log.oldestFull()
		if f == nil {
			return s.startLog()
		}
		freed, err := s.moveFile(f)
		if err == nil && !freed { // a shard is busy: its fence, finalize or delete kicks again
			return nil
		}
		s.log.moved(err)
		if err != nil {
			return err
		}
	}
}

// startLog opens the log for batches, once nothing of an earlier life is in it,
// and says so in the index first.
func (s *Store) startLog() error {
	if s.log.started() {
		return nil
	}
	size := s.opts.LogBytes / logFiles &^ (format.LogAlign - 1)
	if err := s.log.begin(size); err != nil {
		return err
	}
	if err := s.commitMark(s.batch(), true, s.Incarnation()); err != nil {
		return err
	}
	s.log.mayStart()
	return nil
}

// moveAll empties the log.
func (s *Store) moveAll() error {
	s.log.retire()
	return s.moveFull()
}

// moveFile carries what a log file holds over to the data files: data written,
// fdatasync, one synced batch with the records (I1, I5). Only then is the file
// free. A reader that holds an old place finds another record there and looks
// again. freed is false when a shard could not be entered.
func (s *Store) moveFile(f *logFile) (freed bool, err error) {
	live := s.log.liveIn(f)
	slices.SortFunc(live, func(a, b liveRecord) int {
		return cmp.Or(cmp.Compare(a.ref.Segment, b.ref.Segment), cmp.Compare(a.ref.Shard, b.ref.Shard),
			cmp.Compare(a.ref.Generation, b.ref.Generation), cmp.Compare(a.offset, b.offset), cmp.Compare(a.seq, b.seq))
	})
	b, freed := s.batch(), true
	var moves []shardMove
	defer func() {
		for _, m := range moves {
			m.sh.leave()
			s.table.unpin(m.sh)
		}
	}()
	for len(live) > 0 {
		n := 1
		for n < len(live) && live[n].ref == live[0].ref {
			n++
		}
		sh, err := s.table.pin(live[0].ref)
		live = live[n:]
		if err != nil {
			continue // deleted
		}
		if !sh.tryEnter() {
			freed = false
			s.table.unpin(sh)
			continue
		}
		moves = append(moves, shardMove{sh: sh, entries: sh.loggedIn(f)})
		if err := s.moveShard(&moves[len(moves)-1], b); err != nil {
			_ = b.Close()
			return false, err
		}
	}
	return freed, s.switchPlaces(f, moves, b, freed)
}

// shardMove is what one shard has in a log file.
type shardMove struct {
	sh      *shard
	entries []entry
	lost    []entry // of these: what became a doubt
}

// moveShard writes a shard's units to its data file, syncs it, and adds their
// records to the batch. A record that can't be read any more becomes a doubt.
func (s *Store) moveShard(m *shardMove, b *pebble.Batch) error {
	if len(m.entries) == 0 {
		return nil
	}
	file, err := s.files.acquire(fileName{m.sh.ref.ShardKey, m.sh.ref.Generation})
	if err != nil {
		return err
	}
	defer s.files.release(file)
	w := runs{file: file, own: s.opts.Queue, buf: &s.moveBuf}
	for i := range m.entries {
		e := &m.entries[i]
		header, payload, err := s.smallUnit(e)
		if err != nil {
			m.lost = append(m.lost, *e)
			if err := s.putDoubt(m.sh, b, e, err); err != nil {
				return err
			}
			continue
		}
		if err := w.add(int64(e.offset), payload); err != nil {
			return err
		}
		if err := b.Set(format.AppendStripeKey(nil, format.KindStripe, m.sh.ref.ShardKey, e.offset, e.seq), header, nil); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.sync()
}

// switchPlaces commits the batch: from here on the index knows the stripes.
func (s *Store) switchPlaces(f *logFile, moves []shardMove, b *pebble.Batch, freed bool) error {
	if freed {
		s.log.setFreed(f)
	}
	if err := s.commitMark(b, true, s.Incarnation()); err != nil {
		return err
	}
	for i := range moves {
		m := &moves[i]
		s.indexed(m.sh, func(e *entry) bool { return e.state == logged && has(m.entries, e) })
		s.discount(m.sh, m.lost)
	}
	if freed {
		s.log.reuse(f)
	}
	return nil
}

// discount takes lost stripes out of the account again.
func (s *Store) discount(sh *shard, lost []entry) {
	s.table.update(sh.slot, func(r *row) {
		for i := range lost {
			r.stored -= lost[i].unit / layout.BlockSize
			r.stripes--
		}
	})
}

// putDoubt records that a stripe was durable here and is damaged: the shard
// can't tell any more, and must never say that it never had it.
func (s *Store) putDoubt(sh *shard, b *pebble.Batch, e *entry, cause error) error {
	if err := s.dev.err(); err != nil {
		return err // the device failed, which says nothing of the record
	}
	s.logger.Error("a log record is damaged", "segment", sh.ref.Segment, "shard", sh.ref.Shard, "seq", e.seq, "err", cause)
	s.table.update(sh.slot, func(r *row) { r.doubts = true })
	return b.Set(format.AppendStripeKey(nil, format.KindDoubt, sh.ref.ShardKey, e.offset, e.seq), format.AppendDoubt(nil, e.unit), nil)
}

// smallUnit gives a small entry's header and unit, from memory or from the log.
func (s *Store) smallUnit(e *entry) (header, payload []byte, err error) {
	if e.record != nil {
		return e.record.header(), e.record.payload(), nil
	}
	return s.readLogged(e)
}

// readLogged reads a logged entry's record from the log.
func (s *Store) readLogged(e *entry) (header, payload []byte, err error) {
	b := make([]byte, format.LogRecordLen(int(e.header), int(e.unit)))
	return s.log.read(e.file, e.pos, e.lsn, b)
}

// loggedIn gives the entries that stand in a log file.
func (sh *shard) loggedIn(f *logFile) []entry {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var list []entry
	for i := range sh.entries {
		if sh.entries[i].state == logged && sh.entries[i].file == f {
			list = append(list, sh.entries[i])
		}
	}
	return list
}
