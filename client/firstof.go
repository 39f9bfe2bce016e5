package client

import (
	"context"
	"fmt"
	"time"
)

// firstOf goes several ways to one thing, each once those before it have failed or
// are late, and gives what comes first; the other ways are ended, not waited for.
// When all fail the error is the first one's kind and tells all of them, in one line.
func firstOf[T any](ctx context.Context, late time.Duration, ways []func(context.Context) (T, error)) (first T, err error) {
	type outcome struct {
		of  T
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome, len(ways)) // those that are not waited for block nobody
	patience := time.NewTimer(0)              // the first way is due at once
	defer patience.Stop()
	var failed []error
	for begun := 0; len(failed) < len(ways); {
		select {
		case o := <-outcomes:
			if o.err == nil {
				return o.of, nil
			}
			if failed = append(failed, o.err); len(failed) < begun {
				continue // others are on their way
			}
			patience.Reset(0)
		case <-patience.C:
			if begun == len(ways) {
				continue
			}
			way := ways[begun]
			begun++
			go func() {
				got, err := way(ctx)
				outcomes <- outcome{got, err}
			}()
			patience.Reset(late)
		}
	}
	err = failed[0]
	for _, e := range failed[1:] {
		err = fmt.Errorf("%w; %v", err, e)
	}
	return first, err
}
