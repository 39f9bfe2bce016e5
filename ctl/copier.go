package ctl

import (
	"context"
	"io"
	"sync/atomic"

	"strake/client"
	"strake/internal/errs"
)

const (
	copyChunk   = 4 << 20 // bytes of one write or read
	copyFlights = 8       // writes or reads under way
)

// copier writes a stream into a volume. Several writes are under way, and while
// one part is made durable the next is written. The flush runs on a goroutine of
// its own; there is one at a time, and finish or wait see it end.
type copier struct {
	vol      *client.Volume
	start    int64
	at       int64 // where the next byte goes
	asked    int64 // up to here a flush was asked for
	every    int64 // bytes between flushes
	flights  []*client.Completion
	flushing chan error              // of the flush under way, nil when there is none
	flushed  func(bytes int64) error // is told after each flush
	durable  atomic.Int64            // bytes from start on that a flush covered
}

func newCopier(vol *client.Volume, at, every int64, flushed func(int64) error) *copier {
	return &copier{vol: vol, start: at, at: at, asked: at, every: every, flushed: flushed}
}

// from copies a stream of which the volume has the first skip bytes already. When
// the stream fails, or ctx ends, what was read until then is still written and made
// durable, as long as work lasts; the error is the stream's, or ctx's cause. seen is
// told all bytes, the skipped ones too.
func (c *copier) from(ctx, work context.Context, in *pull, skip int64, seen func([]byte)) error {
	defer c.wait()
	buf := make([]byte, copyChunk)
	var err error
	for n := 0; err == nil; {
		part := buf
		if skip > 0 {
			part = buf[:min(skip, copyChunk)]
		}
		n, err = in.fill(ctx, part)
		seen(part[:n])
		if skip > 0 {
			skip -= int64(n)
			continue
		}
		if err := c.write(work, part[:n]); err != nil {
			return err
		}
	}
	if skip > 0 && err == io.EOF {
		return errs.New(errs.OutOfRange, "", "the source ends %d bytes before what was to be skipped", skip)
	}
	if flushErr := c.finish(work); flushErr != nil {
		return flushErr
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// write takes the next bytes; p may be used again when it returns.
func (c *copier) write(ctx context.Context, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if c.at+int64(len(p)) > c.vol.Size() {
		return doesNotFit(c.vol, c.at+int64(len(p)))
	}
	if len(c.flights) == copyFlights {
		if err := c.flights[0].Wait(ctx); err != nil {
			return err
		}
		c.flights = c.flights[1:]
	}
	c.flights = append(c.flights, c.vol.WriteAsync(p, c.at))
	c.at += int64(len(p))
	if c.at-c.asked < c.every {
		return nil
	}
	return c.flush(ctx)
}

// flush begins to make all bytes so far durable, once the flush before is done.
func (c *copier) flush(ctx context.Context) error {
	if err := c.flushEnd(); err != nil {
		return err
	}
	flights, at := c.flights, c.at
	c.flights, c.asked = nil, at
	done := make(chan error, 1)
	c.flushing = done
	go func() { done <- c.flushNow(ctx, flights, at) }()
	return nil
}

func (c *copier) flushNow(ctx context.Context, flights []*client.Completion, at int64) error {
	for _, f := range flights {
		if err := f.Wait(ctx); err != nil {
			return err
		}
	}
	if err := c.vol.Flush(ctx); err != nil {
		return err
	}
	c.durable.Store(at - c.start)
	return c.flushed(at - c.start)
}

// flushEnd waits for the flush under way.
func (c *copier) flushEnd() error {
	if c.flushing == nil {
		return nil
	}
	err := <-c.flushing
	c.flushing = nil
	return err
}

// finish makes everything durable.
func (c *copier) finish(ctx context.Context) error {
	if err := c.flush(ctx); err != nil {
		return err
	}
	return c.flushEnd()
}

// wait waits for what is under way after an error, and drops its outcome.
func (c *copier) wait() { _ = c.flushEnd() }
