package client

import (
	"context"
	"sync"

	"strake/internal/errs"
)

// Completion is the outcome of a write that goes on in the background.
type Completion struct {
	done chan struct{}
	once sync.Once
	err  error // set before done is closed
}

func newCompletion() *Completion { return &Completion{done: make(chan struct{})} }

func completed(err error) *Completion {
	c := newCompletion()
	c.finish(err)
	return c
}

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

// finish sets the outcome; only the first one counts.
func (c *Completion) finish(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
	})
}
