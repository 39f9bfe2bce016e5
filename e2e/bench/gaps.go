package bench

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/internal/errs"
)

// The faults of which gaps are measured.
const (
	gapKill = "gap-kill" // a chunk server is killed
	gapStop = "gap-stop" // its process is stopped: connections stay, nothing answers
)

// stopLasts is how much longer than --seconds a stopped server is looked at: the
// longest that a writer waits for it.
const stopLasts = 3.0

// Gap is what a client felt of a fault, each time it was made: one process writes
// 4 KiB blocks one after another, another reads them.
type Gap struct {
	Name         string    `json:"name"`
	Faults       int       `json:"faults"`
	LongestWrite float64   `json:"longest_gap_without_write_ms"` // between two acknowledged writes
	MedianWrite  float64   `json:"median_gap_without_write_ms"`
	LongestRead  float64   `json:"longest_read_ms"`
	MedianRead   float64   `json:"median_longest_read_ms"` // of the longest in each fault
	Writes       []float64 `json:"gaps_without_write_ms"`  // by fault
	Reads        []float64 `json:"longest_reads_ms"`
}

func gapNames() []string { return []string{gapKill, gapStop} }

// gapLoads are the two loads that run through a fault.
func gapLoads() []Case {
	return []Case{
		{Name: "gap-write", Block: 4 * kib, Depth: 1, Write: true, Random: true},
		{Name: "gap-read", Block: 4 * kib, Depth: 1, Random: true},
	}
}

// gap makes a fault as often as asked for, each time on another server.
func (b *bench) gap(ctx context.Context, name string) error {
	if b.target.own == nil {
		b.notes = append(b.notes, name+" is left out: servers of a cell that is in use are not stopped")
		return nil
	}
	var jobs []*job
	for _, c := range gapLoads() {
		one, _, err := b.jobs(ctx, c)
		if err != nil {
			return err
		}
		jobs = append(jobs, one[0])
	}
	t, err := b.crew.hireTeam(len(jobs))
	if err != nil {
		return err
	}
	defer t.dismiss()
	if _, err := t.all(ctx, func(i int) order { return order{Do: orderOpen, Job: jobs[i]} }); err != nil {
		return err
	}
	g := Gap{Name: name}
	for i := range b.Repeat {
		b.tellRun(name, i, nil)
		if err := b.oneGap(ctx, &g, t, i); err != nil {
			return errs.Wrap(err, "%s, fault %d", name, i+1)
		}
	}
	g.finish()
	b.gaps = append(b.gaps, g)
	return nil
}

// oneGap runs both loads, makes the fault in the middle, and takes it back.
func (b *bench) oneGap(ctx context.Context, g *Gap, t team, i int) error {
	if _, err := t.all(ctx, same(order{Do: orderWarm})); err != nil {
		return err
	}
	server := b.target.own.Chunkds[i%len(b.target.own.Chunkds)]
	fault, seconds := server.Kill, b.Seconds
	if g.Name == gapStop {
		fault, seconds = server.Pause, b.Seconds+stopLasts
	}
	var group errgroup.Group
	timer := time.NewTimer(time.Duration(b.Seconds / 3 * float64(time.Second)))
	defer timer.Stop()
	group.Go(func() error {
		<-timer.C
		return errs.As(fault(), errs.Unavailable, "make the fault")
	})
	reports, err := t.all(ctx, same(order{Do: orderRun, Seconds: seconds}))
	if faultErr := group.Wait(); err == nil {
		err = faultErr
	}
	if err != nil {
		return err
	}
	write, read := reports[0].Tally, reports[1].Tally
	hist, err := read.histogram()
	if err != nil {
		return err
	}
	g.Faults++
	g.Writes = append(g.Writes, rounded(1000*write.Gap))
	g.Reads = append(g.Reads, rounded(float64(hist.Max())/float64(time.Millisecond)))
	if g.Name == gapStop {
		if err := server.Resume(); err != nil {
			return errs.As(err, errs.Unavailable, "let the server go on")
		}
		return b.target.complete(ctx)
	}
	b.target.stopped = server
	return b.target.restart(ctx)
}

func (g *Gap) finish() {
	if g.Faults == 0 {
		return
	}
	middle := func(list []float64) float64 {
		list = slices.Sorted(slices.Values(list))
		return list[len(list)/2]
	}
	g.LongestWrite, g.MedianWrite = slices.Max(g.Writes), middle(g.Writes)
	g.LongestRead, g.MedianRead = slices.Max(g.Reads), middle(g.Reads)
}
