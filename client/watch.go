package client

import (
	"sync"
	"time"
)

const (
	// watchTick is how often reads under way are looked at, and so how exact the
	// time is at which a call counts as late.
	watchTick = 2 * time.Millisecond
	// watchLinger is how many looks without a read it takes to stop looking.
	watchLinger = 500
)

// watch tells reads when a call of theirs is late. A timer for each read would
// cost more than a small read's other work: setting one makes the runtime wake a
// thread. So one goroutine looks at all reads every watchTick, and sleeps while
// there are none. The zero value is ready for start.
type watch struct {
	began time.Time
	done  sync.WaitGroup

	mu     sync.Mutex
	reads  []*fetcher // guarded by mu, as is all below
	asleep bool
	closed bool
	wake   *sync.Cond
}

func (w *watch) start() {
	w.began, w.wake = time.Now(), sync.NewCond(&w.mu)
	w.done.Go(w.run)
}

// at is a time as fetcher.lateAt holds it.
func (w *watch) at(t time.Time) int64 { return max(int64(t.Sub(w.began)), 1) }

// add takes in a read that begins.
func (w *watch) add(f *fetcher) {
	w.mu.Lock()
	f.watched = len(w.reads)
	w.reads = append(w.reads, f)
	asleep := w.asleep
	w.mu.Unlock()
	if asleep {
		w.wake.Signal()
	}
}

// remove takes out a read that has ended.
func (w *watch) remove(f *fetcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.reads) - 1
	w.reads[f.watched] = w.reads[last]
	w.reads[f.watched].watched = f.watched
	w.reads[last] = nil
	w.reads = w.reads[:last]
}

func (w *watch) run() {
	for idle := 0; w.await(idle == watchLinger); time.Sleep(watchTick) {
		if idle = (idle + 1) % (watchLinger + 1); w.look() {
			idle = 0
		}
	}
}

// await waits until there is a read when it is told to sleep; false when the
// watch is stopped.
func (w *watch) await(sleep bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.asleep = sleep; sleep && len(w.reads) == 0 && !w.closed; {
		w.wake.Wait()
	}
	w.asleep = false
	return !w.closed
}

// look wakes the reads with a call that is late, and tells whether there are any.
func (w *watch) look() (busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := int64(time.Since(w.began))
	for _, f := range w.reads {
		if at := f.lateAt.Load(); at != 0 && at <= now {
			f.lateAt.Store(0)
			f.late.Store(true)
			f.nudge()
		}
	}
	return len(w.reads) > 0
}

// stop ends the goroutine and waits for it.
func (w *watch) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake.Broadcast()
	w.done.Wait()
}
