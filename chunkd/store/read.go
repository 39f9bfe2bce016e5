package store

import (
	"errors"
	"io"
	"sort"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// Read fills dst with the ranges' bytes one after another and gives their
// number. It sees units that were appended and not synced. A block that no
// stripe covers reads as zeros. The bytes are not verified here: their CRCs are,
// by the reader. A unit that is known to be damaged is Corrupt.
func (s *Store) Read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error) {
	n, err := s.read(ref, ranges, dst)
	if err != nil {
		return 0, typedRead(err, "read shard %v", ref.ShardKey)
	}
	return n, nil
}

func (s *Store) read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error) {
	r, file, sh, err := s.openRead(ref)
	if err != nil {
		return 0, err
	}
	defer s.closeRead(file, sh)
	n := 0
	for _, g := range ranges {
		if err := r.checkRange(g); err != nil {
			return 0, err
		}
		if n+int(g.Length) > len(dst) {
			return 0, errs.New(errs.InvalidArgument, "", "%d bytes of room for the ranges are too few", len(dst))
		}
		if r.doubts {
			if err := s.checkDoubts(ref.ShardKey, g.Offset, int64(g.Length)); err != nil {
				return 0, err
			}
		}
		if err := s.readRange(sh, file, g.Offset, dst[n:n+int(g.Length)]); err != nil {
			return 0, err
		}
		n += int(g.Length)
	}
	return n, nil
}

// openRead finds a shard and its file; sh is nil when nothing of it is in memory
// or in the log. closeRead must follow.
func (s *Store) openRead(ref frame.ShardRef) (r row, file *handle, sh *shard, err error) {
	if err := s.dev.err(); err != nil {
		return row{}, nil, nil, err
	}
	i, r, err := s.table.find(ref)
	if err != nil {
		return row{}, nil, nil, err
	}
	if file, err = s.files.acquire(fileName{ref.ShardKey, r.generation}); err != nil {
		return row{}, nil, nil, typed(err, "open data file")
	}
	if r.state != format.ShardFinalized {
		sh = s.table.pinActive(i, ref)
	}
	return r, file, sh, nil
}

func (s *Store) closeRead(file *handle, sh *shard) {
	s.files.release(file)
	if sh != nil {
		s.table.unpin(sh)
	}
}

func (r *row) checkRange(g frame.ReadRange) error {
	if g.Offset < 0 || g.Offset%layout.BlockSize != 0 || g.Length%layout.BlockSize != 0 ||
		g.Offset+layout.ShardOffset(g.Length) > r.lengthBytes() {
		return errs.New(errs.OutOfRange, "", "range at %d of %d bytes in a shard of %d", g.Offset, g.Length, r.lengthBytes())
	}
	return nil
}

// readRange reads one range. A unit may move from memory to the log to the data
// file while it is read; drops counts the moves, and when one came between, the
// range is read again.
func (s *Store) readRange(sh *shard, file *handle, off layout.ShardOffset, p []byte) error {
	if sh == nil {
		return readFile(file, int64(off), p)
	}
	for {
		drops, covered := sh.look(off, len(p))
		if !covered {
			if err := readFile(file, int64(off), p); err != nil {
				return err
			}
		}
		same, err := s.overlay(sh, drops, off, p)
		if same {
			return err
		}
	}
}

// readFile reads from a data file; what lies past its end reads as zeros.
func readFile(file *handle, off int64, p []byte) error {
	n, err := file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		clear(p[n:])
		return nil
	}
	return err
}

// look tells the count of drops, and whether one unit outside the data file
// covers the whole range.
func (sh *shard) look(off layout.ShardOffset, n int) (drops uint64, covered bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i := sh.firstAt(off)
	covered = i < len(sh.entries) && sh.entries[i].offset <= off && sh.entries[i].end() >= off+layout.ShardOffset(n) &&
		(sh.entries[i].state == logged || sh.entries[i].record != nil)
	return sh.drops, covered
}

// firstAt finds the first entry that ends after off. Called with mu held.
func (sh *shard) firstAt(off layout.ShardOffset) int {
	return sort.Search(len(sh.entries), func(i int) bool { return sh.entries[i].end() > off })
}

// overlay puts the units that are not in the data file over p. same is false
// when one moved meanwhile. Units in memory are copied under the lock, as their
// memory is used again once they are in the log; at most SmallAppend each.
func (s *Store) overlay(sh *shard, drops uint64, off layout.ShardOffset, p []byte) (same bool, err error) {
	var few [4]entry
	inLog := few[:0]
	end := off + layout.ShardOffset(len(p))
	sh.mu.Lock()
	for i := sh.firstAt(off); i < len(sh.entries) && sh.entries[i].offset < end; i++ {
		switch e := &sh.entries[i]; {
		case e.record != nil:
			from, to := max(off, e.offset), min(end, e.end())
			copy(p[from-off:to-off], e.record.payload()[from-e.offset:])
		case e.state == logged:
			inLog = append(inLog, *e)
		}
	}
	same = sh.drops == drops
	sh.mu.Unlock()
	for i := range inLog {
		e := &inLog[i]
		from, to := max(off, e.offset), min(end, e.end())
		at := e.pos + format.LogHeadLen + int64(e.header) + int64(from-e.offset)
		if _, e := e.file.file.ReadAt(p[from-off:to-off], at); e != nil {
			err = e
		}
	}
	if len(inLog) > 0 {
		sh.mu.Lock()
		same = same && sh.drops == drops
		sh.mu.Unlock()
	}
	return same, err
}
