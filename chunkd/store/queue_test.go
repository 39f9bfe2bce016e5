package store

import (
	"context"
	"slices"
	"sync"
	"testing"

	"strake/chunkd/format"
	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
	"strake/internal/vfs"
)

// loneQueue gives one turn at a time, and notes how long each is.
type loneQueue struct {
	*sched.QoS
	piece int

	mu    sync.Mutex
	turns []int // guarded by mu
}

func newLoneQueue(piece int) *loneQueue {
	return &loneQueue{QoS: sched.NewQoS(mclock.Options{MaxWidth: 1}), piece: piece}
}

func (q *loneQueue) Piece() int { return q.piece }

func (q *loneQueue) Turn(n int, work func()) {
	q.mu.Lock()
	q.turns = append(q.turns, n)
	q.mu.Unlock()
	if err := q.Do(context.Background(), sched.Tag{Class: layout.ClassBackground, Write: true, Bytes: n}, work); err != nil {
		panic(err)
	}
}

func (q *loneQueue) taken() (longest, sum int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range q.turns {
		longest, sum = max(longest, n), sum+n
	}
	return longest, sum
}

// writeWatch notes the longest direct write and the most that a sync covers.
type writeWatch struct {
	vfs.FS
	mu      sync.Mutex
	longest int // guarded by mu
}

type watchedFile struct {
	vfs.File
	w     *writeWatch
	dirty int // guarded by w.mu
}

func (w *writeWatch) Create(path string) (vfs.File, error) { return w.watch(w.FS.Create(path)) }
func (w *writeWatch) Open(path string) (vfs.File, error)   { return w.watch(w.FS.Open(path)) }

func (w *writeWatch) watch(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &watchedFile{File: f, w: w}, nil
}

func (w *writeWatch) saw(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = max(w.longest, n)
}

func (f *watchedFile) WriteAt(p []byte, off int64) (int, error) {
	f.w.mu.Lock()
	f.dirty += len(p)
	f.w.mu.Unlock()
	return f.File.WriteAt(p, off)
}

func (f *watchedFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	n, err := f.File.WritevAt(bufs, off)
	f.w.mu.Lock()
	f.dirty += n
	f.w.mu.Unlock()
	return n, err
}

func (f *watchedFile) WriteDirect(p []byte, off int64, durable bool) (int, error) {
	f.w.saw(len(p))
	return f.File.WriteDirect(p, off, durable)
}

func (f *watchedFile) Sync() error {
	f.w.mu.Lock()
	n := f.dirty
	f.dirty = 0
	f.w.mu.Unlock()
	f.w.saw(n)
	return f.File.Sync()
}

// TestTheStoresOwnWritesTakeTurns: whatever the log, the moves and the index give
// the device at once is short, and had a turn; on a device that takes one at a time
// no turn waits for another.
func TestTheStoresOwnWritesTakeTurns(t *testing.T) {
	const piece = 16 << 10
	w, q := &writeWatch{FS: newMem()}, newLoneQueue(piece)
	ok(t, Format(w, testID))
	opts := testOptions
	opts.Queue, opts.LogBytes = q, 8*minLogBytes
	s, err := Open(w, format.Superblock{}, opts)
	ok(t, err)
	w.mu.Lock()
	w.longest = 0 // a new store's log is written once as a whole
	w.mu.Unlock()
	before := s.Counters()
	const shards = 4
	for g := range layout.SegmentID(shards) {
		ok(t, s.Create(testSpec(g+1)))
	}
	for n := range 160 {
		var refs []layout.SegmentID
		for g := range layout.SegmentID(shards) {
			ok(t, s.Append(unitOf(g+1, 5, layout.Seq(n+1), layout.ShardOffset(n)*4096, 4096)))
			refs = append(refs, g+1)
		}
		if n%8 == 7 { // the log's batches are as long as they get
			synced(t, s, refs...)
		}
	}
	if _, err := s.Fence(testRef(1), 6); err != nil {
		t.Fatal(err)
	}
	ok(t, s.moveAll())
	w.mu.Lock()
	if w.longest > leastBatch || w.longest < piece {
		t.Errorf("the device got %d bytes at once, want %d at most", w.longest, leastBatch)
	}
	w.mu.Unlock()
	c := s.Counters()
	if longest, sum := q.taken(); longest > leastBatch || uint64(sum) < c.LogBytes+c.DataBytes-before.LogBytes-before.DataBytes {
		t.Errorf("turns of up to %d bytes, %d in all; %d were written to the log and %d moved", longest, sum, c.LogBytes-before.LogBytes, c.DataBytes-before.DataBytes)
	}
	ok(t, s.Check())
	ok(t, s.Close())
}

// TestALongRecordIsABatchAlone: one that is longer than a turn's batch is written.
func TestALongRecordIsABatchAlone(t *testing.T) {
	q := newLoneQueue(4096)
	fsys := formatted(t, newMem())
	s, err := Open(fsys, format.Superblock{}, Options{Queue: q, LogBytes: 8 << 20})
	ok(t, err)
	ok(t, s.Create(testSpec(1)))
	for n := range 3 {
		ok(t, s.Append(unitOf(1, 5, layout.Seq(n+1), layout.ShardOffset(n)*(64<<10), 64<<10)))
	}
	synced(t, s, 1)
	q.mu.Lock()
	if n := len(slices.DeleteFunc(slices.Clone(q.turns), func(n int) bool { return n <= 64<<10 })); n != 3 {
		t.Errorf("turns of %v, want three of more than 64 KiB", q.turns)
	}
	q.mu.Unlock()
	ok(t, s.Close())
}

// TestTheIndexOfALongMoveTakesTurns: the records of a whole log file go into the
// index in one batch, which the device must not get at once.
func TestTheIndexOfALongMoveTakesTurns(t *testing.T) {
	const piece, shards, units = 16 << 10, 4, 200
	w, q := &writeWatch{FS: vfs.NewMem(vfs.MemOptions{})}, newLoneQueue(piece)
	ok(t, Format(w, testID))
	opts := testOptions
	opts.Queue, opts.LogBytes = q, defaultLogBytes
	s, err := Open(w, format.Superblock{}, opts)
	ok(t, err)
	w.mu.Lock()
	w.longest = 0
	w.mu.Unlock()
	for g := range layout.SegmentID(shards) {
		ok(t, s.Create(testSpec(g+1)))
		for n := range units {
			ok(t, s.Append(unitOf(g+1, 5, layout.Seq(n+1), layout.ShardOffset(n)*4096, 4096)))
		}
		synced(t, s, g+1)
	}
	before := s.Counters().IndexBytes
	ok(t, s.moveAll())
	const block = 32 << 10 // that Pebble's log is written in
	if n := s.Counters().IndexBytes - before; n < 2*block {
		t.Fatalf("the move put %d bytes into the index, too few to tell", n)
	}
	w.mu.Lock()
	if most := leastBatch + block; w.longest > most {
		t.Errorf("the device got %d bytes at once, want %d at most", w.longest, most)
	}
	w.mu.Unlock()
	ok(t, s.Check())
	ok(t, s.Close())
}
