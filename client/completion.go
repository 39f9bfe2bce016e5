package client

import (
	"context"
	"sync"
	"sync/atomic"

	"strake/internal/errs"
)

// Completion is the outcome of a write that goes on in the background.
type Completion struct {
	done     chan struct{}
	single   bool        // done has one slot and is not closed: there is one who waits
	finished atomic.Bool // finish was called
	left     bool        // nobody waits for it any more; guarded by the volume's mutex
	err      error       // set before done is closed
}

func newCompletion() *Completion { return &Completion{done: make(chan struct{})} }

func completed(err error) *Completion {
	c := newCompletion()
	c.finish(err)
	return c
}

// completions keeps completions that one caller waits for, so that a write or a flush
// allocates nothing.
var completions = sync.Pool{New: func() any { return &Completion{done: make(chan struct{}, 1), single: true} }}

// oneWait gives a completion to be awaited once, with await.
func oneWait() *Completion { return completions.Get().(*Completion) }

// Done is closed when the write is acknowledged or has failed.
func (c *Completion) Done() <-chan struct{} { return c.done }

// Err is the write's error; valid once Done is closed.
func (c *Completion) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Wait waits for the write, or until ctx ends; the write goes on then.
func (c *Completion) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for a write")
	}
}

// await is Wait for one that oneWait gave: it goes back, unless ctx ended first,
// since then somebody will still finish it: over is false.
func (c *Completion) await(ctx context.Context) (over bool, err error) {
	if !c.waited(ctx) {
		return false, errs.As(ctx.Err(), errs.KindOf(ctx.Err()), "wait for a write")
	}
	err = c.err
	c.err, c.left = nil, false
	c.finished.Store(false)
	completions.Put(c)
	return true, err
}

// waited waits for the outcome; false when ctx ended first.
func (c *Completion) waited(ctx context.Context) bool {
	end := ctx.Done()
	if end == nil {
		<-c.done
		return true
	}
	select {
	case <-c.done:
		return true
	case <-end:
		return false
	}
}

// finish sets the outcome; only the first one counts. It touches nothing once
// who waits can go on.
func (c *Completion) finish(err error) {
	if c.finished.Swap(true) {
		return
	}
	c.err = err
	if c.single {
		c.done <- struct{}{}
	} else {
		close(c.done)
	}
}
