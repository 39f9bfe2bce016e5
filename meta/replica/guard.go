package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// store is what raft keeps its log, term and vote in.
type store interface {
	raft.LogStore
	raft.StableStore
}

// guard is the store that raft sees. It seals and checks entries and values, and
// makes the first failure final: raft itself would step down and go on with a
// log whose last write is lost, and the kernel may report the next fsync as a
// success. After a failure, a hang or a corrupt entry no write is acknowledged
// any more, and fatal is called, once, on a goroutine of its own.
type guard struct {
	below   store
	limit   time.Duration // how long a write may take
	fatal   func(error)
	born    func() error  // called after the first write; makes the marker durable
	running atomic.Bool   // raft's goroutines read, not ours
	broken  chan struct{} // closed with the first failure

	mu     sync.Mutex
	failed error // guarded by mu: the first failure
	isBorn bool  // guarded by mu: there is, or was, raft state here
	formed bool  // guarded by mu: the log holds, or held, a command
}

var (
	_ raft.LogStore          = (*guard)(nil)
	_ raft.StableStore       = (*guard)(nil)
	_ raft.MonotonicLogStore = (*guard)(nil)
)

func newGuard(below store, limit time.Duration, fatal func(error), born func() error) *guard {
	return &guard{below: below, limit: limit, fatal: fatal, born: born, broken: make(chan struct{})}
}

// failure is the latched error, or nil.
func (g *guard) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// fail latches the first error and tells the process to end.
func (g *guard) fail(err error) {
	g.mu.Lock()
	first := g.failed == nil
	if first {
		g.failed = err
		close(g.broken)
	}
	g.mu.Unlock()
	if first {
		go g.fatal(err)
	}
}

// write runs one write under the watchdog. A write that ends after the watchdog
// barked is not acknowledged.
func (g *guard) write(what string, do func() error) error {
	if err := g.failure(); err != nil {
		return err
	}
	watchdog := time.AfterFunc(g.limit, func() {
		g.fail(errs.New(errs.Unavailable, what, "the disk did not answer within %v", g.limit).
			WithHint("check the disk of this server's directory, then start it again"))
	})
	err := do()
	watchdog.Stop()
	if err == nil {
		err = g.mark()
	}
	if err != nil {
		g.fail(errs.Wrap(err, "%s", what).(*errs.Error).
			WithHint("check the disk of this server's directory; if it is lost, remove this member from the cell, empty the directory and add it again"))
	}
	return g.failure()
}

// mark makes the marker durable after the first write and before its
// acknowledgement. The order is on purpose: a crash in between leaves state
// without a marker, which the next start mends; the other way round a server
// that never was a member would look wiped.
func (g *guard) mark() error {
	g.mu.Lock()
	done := g.isBorn
	g.isBorn = true
	g.mu.Unlock()
	if done || g.born == nil {
		return nil
	}
	return g.born()
}

// note remembers that a command was seen.
func (g *guard) note(entry *raft.Log) {
	if entry.Type != raft.LogCommand {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.formed = true
}

// history tells whether there ever was raft state here, and a command in it.
func (g *guard) history() (born, formed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isBorn, g.formed
}
