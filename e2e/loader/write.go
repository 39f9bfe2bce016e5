package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"strake/client"
	"strake/e2e/workload"
)

const (
	slow      = 500 * time.Millisecond
	readEvery = 5 * time.Millisecond
)

// write writes and reads until ctx ends; then the volume must be as written.
func write(ctx context.Context, o options) error {
	setup, cancel := context.WithTimeout(context.Background(), setWithin)
	defer cancel()
	cell, err := made(o)
	if err != nil {
		return err
	}
	vol, err := cell.Open(setup, o.volume, client.OpenOptions{Write: true, Force: true})
	if err != nil {
		return err
	}
	fmt.Println("open")
	l := &load{vol: vol, o: o}
	if err := l.run(ctx); err != nil {
		return err
	}
	return l.end(cell)
}

// load is a writer and a reader of one volume.
type load struct {
	vol   *client.Volume
	o     options
	began atomic.Uint64 // operations

	reads   int           // written by the reader
	slowest time.Duration // of the reads; written by the reader
}

// run is both; the first failure ends it.
func (l *load) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	var readErr error
	wait.Go(func() {
		if readErr = l.read(ctx); readErr != nil {
			cancel()
		}
	})
	err := workload.Write(ctx, l.vol, l.o.plan(), io.MultiWriter(os.Stdout, l))
	cancel()
	wait.Wait()
	if readErr != nil {
		return readErr
	}
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Write implements io.Writer: it takes the lines of workload.Write.
func (l *load) Write(p []byte) (int, error) {
	if began, _ := workload.Progress(string(p)); began > 0 {
		l.began.Store(began)
	}
	return len(p), nil
}

// read reads here and there: every block must be one that the writer wrote.
func (l *load) read(ctx context.Context) error {
	random := rand.New(rand.NewPCG(l.o.seed, 7))
	buf := make([]byte, mostBlocks*workload.BlockSize)
	for ctx.Err() == nil {
		count := 1 + random.Uint64N(mostBlocks)
		first := random.Uint64N(l.o.blocks - count + 1)
		part, begun := buf[:count*workload.BlockSize], time.Now()
		if _, err := l.vol.ReadAt(part, int64(first)*workload.BlockSize); err != nil {
			return fmt.Errorf("read %d blocks at block %d: %w", count, first, err)
		}
		took := time.Since(begun)
		l.slowest, l.reads = max(l.slowest, took), l.reads+1
		if took > slow {
			fmt.Println("slow read", took.Milliseconds())
		}
		for i := range count {
			s, err := workload.Read(part[i*workload.BlockSize:(i+1)*workload.BlockSize], l.o.volume, first+i)
			if err != nil {
				return err
			}
			if s.Op > l.began.Load() {
				return fmt.Errorf("block %d shows operation %d, which was not begun", first+i, s.Op)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(readEvery):
		}
	}
	return nil
}

// end flushes, checks as the writer, and closes.
func (l *load) end(cell *client.Cell) error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := l.vol.Flush(ctx); err != nil {
		return fmt.Errorf("flush at the end: %w", err)
	}
	h := workload.NewHistory(l.o.volume, l.o.blocks)
	h.Advance(l.o.plan(), l.began.Load())
	if err := h.Check(l.vol); err != nil {
		return fmt.Errorf("by the writer itself: %w", err)
	}
	if err := l.vol.CloseContext(ctx); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	fmt.Printf("ended began %d reads %d slowest %d\n", l.began.Load(), l.reads, l.slowest.Milliseconds())
	return cell.Close()
}
