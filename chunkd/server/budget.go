package server

import (
	"context"

	"golang.org/x/sync/semaphore"

	"strake/internal/errs"
)

// budget bounds the memory of large payloads over all connections: those that
// were read from a socket or a device and not yet handed on. Safe for
// concurrent use.
type budget struct{ free *semaphore.Weighted }

func newBudget(n int64) *budget { return &budget{semaphore.NewWeighted(n)} }

// try takes n bytes if they are free.
func (b *budget) try(n int64) bool { return b.free.TryAcquire(n) }

// wait takes n bytes when they come free. Whoever waits must hold none, so that
// two who wait for each other can't be. Error: Canceled when ctx ends.
func (b *budget) wait(ctx context.Context, n int64) error {
	err := b.free.Acquire(ctx, n)
	return errs.As(err, errs.Canceled, "wait for memory")
}

func (b *budget) release(n int64) {
	if n > 0 {
		b.free.Release(n)
	}
}
