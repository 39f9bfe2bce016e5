package store

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// TestAppendsSyncsReadsAndFencesMeet runs writers, readers and a recoverer of
// several shards at once. What a writer synced before its shard was fenced is in
// the fence's list, and nothing comes to a list after it was given.
func TestAppendsSyncsReadsAndFencesMeet(t *testing.T) {
	s := opened(t, formatted(t, newMem()))
	const shards, units = 4, 60
	var wg sync.WaitGroup
	for id := range shards {
		w := &racer{t: t, s: s, id: segment(id + 1)}
		ok(t, s.Create(testSpec(w.id)))
		wg.Go(func() { w.write(units) })
		wg.Go(w.read)
		wg.Go(w.fence)
	}
	wg.Wait()
	ok(t, s.Check())
	ok(t, s.Close())
}

type racer struct {
	t      *testing.T
	s      *Store
	id     layout.SegmentID
	synced atomic.Int64 // seqs up to here
	done   atomic.Bool
}

func (w *racer) write(units int) {
	defer w.done.Store(true)
	offset := layout.ShardOffset(0)
	for seq := range layout.Seq(units) {
		size := uint32(4096)
		if seq%5 == 4 {
			size = 16 << 10
		}
		a := unitOf(w.id, 5, seq+1, offset, size)
		offset += layout.ShardOffset(size)
		a.Durable = seq%3 == 0
		err := w.s.Append(a)
		if err == nil && seq%3 == 2 {
			err = w.s.Sync(5, w.s.Incarnation(), []frame.ShardRef{a.Ref})
		}
		if errors.Is(err, errs.StaleEpoch) {
			return
		}
		if err != nil {
			w.t.Errorf("append %d to shard %d: %v", seq+1, w.id, err)
			return
		}
		if seq%3 != 1 {
			w.synced.Store(int64(seq + 1))
		}
	}
}

// read reads what was synced, over and over.
func (w *racer) read() {
	var b [4096]byte
	for !w.done.Load() {
		if w.synced.Load() == 0 {
			continue
		}
		want := unitOf(w.id, 5, 1, 0, 4096)
		ranges := []frame.ReadRange{{Length: 4096}}
		_, err := w.s.Read(testRef(w.id), ranges, b[:])
		crcs, crcErr := w.s.CRCs(testRef(w.id), ranges, nil)
		if err != nil || crcErr != nil || !bytes.Equal(b[:], want.Payload) || crcs[0] != crcOf(b[:]) {
			w.t.Errorf("shard %d: unit 1 reads differently: %v, %v", w.id, err, crcErr)
			return
		}
		if _, count, _, err := w.s.List(testRef(w.id), 1, 1<<20); err != nil || count == 0 {
			w.t.Errorf("shard %d: list: %d, %v", w.id, count, err)
			return
		}
	}
}

func (w *racer) fence() {
	for w.synced.Load() < 30 && !w.done.Load() {
	}
	before := w.synced.Load()
	first, err := w.s.Fence(testRef(w.id), 6)
	if err != nil {
		w.t.Errorf("fence: %v", err)
		return
	}
	for !w.done.Load() {
	}
	again, err := w.s.Fence(testRef(w.id), 6)
	if err != nil || len(first) != len(again) || int64(len(first)) < before || w.synced.Load() > int64(len(first)) {
		w.t.Errorf("shard %d: %d synced, the fence lists %d, then %d of %d synced: %v", w.id, before, len(first), len(again), w.synced.Load(), err)
	}
}

// TestAppendsThatWaitShareOneWriteOfTheLog holds the first write of the log until all
// other appends, each of another volume, wait for the next: one write takes them all.
func TestAppendsThatWaitShareOneWriteOfTheLog(t *testing.T) {
	const writers = 7 // what one batch holds at least: 32 KiB
	disk := vfs.NewFault(newMem())
	s := opened(t, formatted(t, disk))
	for id := range writers {
		ok(t, s.Create(testSpec(segment(id+1))))
	}
	isLog := map[string]bool{}
	for _, f := range s.log.files {
		isLog[f.name] = true
	}
	waiting := func() int {
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		if s.log.waiting == nil {
			return 0
		}
		return len(s.log.waiting.records)
	}
	start, before := s.log.next, s.Counters().Fsyncs
	var writes atomic.Int64
	disk.Hook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && isLog[op.Path] && writes.Add(1) == 1 {
			for here := int(s.log.next - start); waiting() < writers-here; {
				runtime.Gosched() // the goroutine that writes has the log's writeMu
			}
		}
		return nil
	})
	var wg sync.WaitGroup
	for id := range writers {
		wg.Go(func() {
			a := unitOf(segment(id+1), 5, 1, 0, 4096)
			a.Durable = true
			if err := s.Append(a); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, syncs := writes.Load(), s.Counters().Fsyncs-before; n > 2 || syncs > 2 {
		t.Errorf("%d durable appends took %d writes and %d syncs, want at most 2", writers, n, syncs)
	}
	disk.Heal()
	ok(t, s.Check())
	ok(t, s.Close())
}
