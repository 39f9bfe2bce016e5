package client

import (
	"context"
	"sync"

	"strake/internal/errs"
	"strake/internal/layout"
)

// rangeLock orders writes that touch the same blocks. A whole-block write takes
// its range shared; a write that must read, modify and write edge blocks takes
// these alone, so that no other write falls between its read and its write.
// Holders are few (they hold it for one submit, or for one block's read), so a
// list is enough. The zero value works; safe for concurrent use.
type rangeLock struct {
	mu    sync.Mutex
	held  []lockedRange // guarded by mu
	last  uint64        // guarded by mu: the newest holder's id
	freed chan struct{} // guarded by mu: closed when a holder leaves; nil while nobody waits
}

type lockedRange struct {
	layout.Range
	alone bool
	id    uint64
}

// lock waits until no conflicting holder is left, or until ctx ends. It gives
// the id that unlock wants.
func (l *rangeLock) lock(ctx context.Context, r layout.Range, alone bool) (id uint64, err error) {
	for {
		id, freed := l.try(r, alone)
		if freed == nil {
			return id, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, errs.Wrap(ctx.Err(), "wait for another write to the same blocks")
		}
	}
}

// try takes the range, or gives a channel that is closed when a holder leaves.
func (l *rangeLock) try(r layout.Range, alone bool) (id uint64, freed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conflicts(r, alone) {
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		return 0, l.freed
	}
	l.last++
	l.held = append(l.held, lockedRange{r, alone, l.last})
	return l.last, nil
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
			break
		}
	}
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}
