package client

import (
	"sync"
	"time"
)

// timer runs a function on its own goroutine at the earliest time that anybody
// asked for.
type timer struct {
	mu   sync.Mutex
	at   time.Time // zero: nothing asked for
	wake chan struct{}
	quit chan struct{}
	once sync.Once // stop
	done sync.WaitGroup
}

func startTimer(fire func()) *timer {
	t := &timer{wake: make(chan struct{}, 1), quit: make(chan struct{})}
	t.done.Go(func() { t.run(fire) })
	return t
}

// wakeAt asks for a run at a time; of several requests the earliest counts.
func (t *timer) wakeAt(at time.Time) {
	t.mu.Lock()
	sooner := t.at.IsZero() || at.Before(t.at)
	if sooner {
		t.at = at
	}
	t.mu.Unlock()
	if sooner {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

func (t *timer) run(fire func()) {
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	for {
		select {
		case <-t.quit:
			return
		case <-t.wake:
		case <-clock.C:
		}
		wait, due := t.due()
		if due {
			fire()
			wait, _ = t.due()
		}
		clock.Reset(wait)
	}
}

// due tells how long to wait; when the time has come it clears the request.
func (t *timer) due() (wait time.Duration, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() {
		return time.Hour, false
	}
	if wait = time.Until(t.at); wait > 0 {
		return wait, false
	}
	t.at = time.Time{}
	return 0, true
}

// stop ends the goroutine and waits for it.
func (t *timer) stop() {
	t.once.Do(func() { close(t.quit) })
	t.done.Wait()
}
