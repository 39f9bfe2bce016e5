package client

import (
	"sync"

	"strake/internal/layout"
)

// rangeLock orders writes that touch the same blocks. A whole-block write takes
// its range shared; a write that must read, modify and write edge blocks takes
// these alone, so that no other write falls between its read and its write.
// Holders are few (they hold it for one submit, or for one block's read), so a
// list is enough. The zero value works; safe for concurrent use.
type rangeLock struct {
	mu   sync.Mutex
	free *sync.Cond
	held []lockedRange
}

type lockedRange struct {
	layout.Range
	alone bool
	id    uint64
}

// lock waits until no conflicting holder is left and gives the unlock function.
func (l *rangeLock) lock(r layout.Range, alone bool) (unlock func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free == nil {
		l.free = sync.NewCond(&l.mu)
	}
	for l.conflicts(r, alone) {
		l.free.Wait()
	}
	var id uint64 = 1
	if n := len(l.held); n > 0 {
		id = l.held[n-1].id + 1
	}
	l.held = append(l.held, lockedRange{r, alone, id})
	return func() { l.unlock(id) }
}

func (l *rangeLock) conflicts(r layout.Range, alone bool) bool {
	for _, h := range l.held {
		if (alone || h.alone) && h.Overlaps(r) {
			return true
		}
	}
	return false
}

func (l *rangeLock) unlock(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range l.held {
		if h.id == id {
			l.held = append(l.held[:i], l.held[i+1:]...)
			l.free.Broadcast()
			return
		}
	}
}
