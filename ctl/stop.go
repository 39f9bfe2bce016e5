package ctl

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopGrace is how long a verb that was told to stop may take to make durable
// what it has, and to let go. Whoever stops a container waits 30 s or 10 s.
const stopGrace = 8 * time.Second

// stopped is why a verb's context ended: a signal asked for it.
type stopped struct{ signal os.Signal }

// Error implements error.
func (s stopped) Error() string { return "stopped by " + signalName(s.signal) }

func signalName(s os.Signal) string {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return s.String()
}

// untilSignal gives a context that ends with the first SIGINT or SIGTERM. A second
// one ends the process at once, as if it had not been caught.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			cancel(stopped{s})
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// terminated tells that ctx ended because of SIGTERM: an orderly stop, no failure.
func terminated(ctx context.Context) bool {
	var s stopped
	return errors.As(context.Cause(ctx), &s) && s.signal == syscall.SIGTERM
}

// outlasting gives a context for what must still be done when ctx ends: it ends
// stopGrace later.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	undo := context.AfterFunc(ctx, func() {
		t := time.NewTimer(stopGrace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-work.Done():
		}
	})
	return work, func() {
		undo()
		cancel()
	}
}
