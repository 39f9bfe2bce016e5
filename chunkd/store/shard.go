package store

import (
	"slices"
	"sync"

	"strake/chunkd/format"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// entryState is where an entry stands on its way to the index.
type entryState uint8

const (
	writing entryState = iota // a large unit on its way to the data file
	written                   // whole, not synced: in the data file, or in buf when small
	logged                    // durable in the append log
)

// entry is a stripe that the index does not have yet. Its life:
//
//	large: writing -> written -> (fdatasync, index batch) -> gone
//	small: written -> (log write, fdatasync) -> logged -> (move) -> gone
type entry struct {
	offset layout.ShardOffset
	seq    layout.Seq
	unit   uint32
	header uint32 // length of the stripe header, bytes
	state  entryState
	file   *logFile // logged: where
	pos    int64    // logged: where in file
	lsn    format.LSN
	record *record // small: the unit in memory; nil for one that a replay found in the log
	large  []byte  // large: the stripe header
}

func (e *entry) end() layout.ShardOffset { return e.offset + layout.ShardOffset(e.unit) }

// inMemory tells whether the stripe header, and of a small unit the payload, is in
// memory: of all but those that a replay found in the log.
func (e *entry) inMemory() bool { return e.state != logged || e.record != nil }

// headerBytes is the stripe header of an entry that is in memory.
func (e *entry) headerBytes() []byte {
	if e.record != nil {
		return e.record.header()
	}
	return e.large
}

// shard is the active form of a shard.
//
// Who may be inside. Appends, syncs and the mover enter (inflight); a fence,
// finalize or delete enters alone: it sets exclusive, which holds newcomers at
// the door, and waits until inflight is zero. Then entries change by its hand
// only, and it does its I/O without holding mu.
type shard struct {
	slot slot
	ref  frame.ShardRef
	refs int // guarded by table.mu

	// syncMu is held across the I/O of a sync, on purpose: syncs of one shard
	// queue here, the first takes all that was written, the others find nothing
	// left to do. Several are locked in the order of their keys.
	syncMu sync.Mutex

	mu        sync.Mutex // guards all below; taken before table.mu
	changed   sync.Cond  // an entry left writing, inflight fell, exclusive ended
	exclusive bool       // somebody wants in alone: newcomers wait, but the mover
	alone     bool       // and is
	inflight  int
	gone      bool    // deleted
	entries   []entry // by (offset, seq)
	known     bool    // tail is known
	tailEnd   layout.ShardOffset
	tailSeq   layout.Seq // end and last seq of what the index has
	drops     uint64     // times that units left memory or log for the data file
	dirty     *handle    // retained while the data file holds un-synced units
}

func newShard(i slot, ref frame.ShardRef) *shard {
	sh := &shard{slot: i, ref: ref}
	sh.changed.L = &sh.mu
	return sh
}

// held tells whether the shard has a reason to stay active.
func (sh *shard) held() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return len(sh.entries) > 0 || sh.dirty != nil
}

// search finds the place of a stripe among the entries. Called with mu held.
func (sh *shard) search(offset layout.ShardOffset, seq layout.Seq) (i int, found bool) {
	if n := len(sh.entries); n > 0 {
		if last := &sh.entries[n-1]; last.offset < offset || last.offset == offset && last.seq < seq {
			return n, false
		}
	}
	return slices.BinarySearchFunc(sh.entries, entry{offset: offset, seq: seq}, func(a, b entry) int {
		if a.offset != b.offset {
			return int(a.offset - b.offset)
		}
		if a.seq < b.seq {
			return -1
		}
		return int(min(a.seq-b.seq, 1))
	})
}

// drop removes the entries that gone selects. Called with mu held.
func (sh *shard) drop(gone func(e *entry) bool) {
	kept := sh.entries[:0]
	for i := range sh.entries {
		if e := sh.entries[i]; !gone(&e) {
			kept = append(kept, e)
		} else if e.state == logged || e.record != nil {
			sh.drops++
		}
	}
	clear(sh.entries[len(kept):])
	sh.entries = kept
	if len(kept) == 0 {
		sh.entries = nil
	}
}

// enter lets a caller in that may run beside others.
func (sh *shard) enter() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for sh.exclusive {
		sh.changed.Wait()
	}
	if sh.gone {
		return goneError(sh.ref)
	}
	sh.inflight++
	return nil
}

func (sh *shard) leave() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.inflight--
	sh.changed.Broadcast()
}

// enterAlone lets a caller in once all others left. announce runs as soon as
// nobody else is at it, before the others have left.
func (sh *shard) enterAlone(announce func() error) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for sh.exclusive {
		sh.changed.Wait()
	}
	if sh.gone {
		return goneError(sh.ref)
	}
	if err := announce(); err != nil {
		return err
	}
	sh.exclusive = true
	for sh.inflight > 0 {
		sh.changed.Wait()
	}
	sh.alone = true
	return nil
}

func (sh *shard) leaveAlone() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.exclusive, sh.alone = false, false
	sh.changed.Broadcast()
}

// tryEnter is enter for the mover: it does not wait, and passes one who still
// waits to be alone, as that one may wait for a sync that waits for the move.
func (sh *shard) tryEnter() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.alone || sh.gone {
		return false
	}
	sh.inflight++
	return true
}

func goneError(ref frame.ShardRef) error {
	return errs.New(errs.NotHere, "", "shard %v was deleted", ref.ShardKey)
}
