package bench

import (
	"context"
	"slices"

	"strake/internal/errs"
)

// The faults of which gaps are measured.
const (
	gapKill   = "gap-kill"   // a chunk server is killed
	gapStop   = "gap-stop"   // its process is stopped: connections stay, nothing answers
	gapLeader = "gap-leader" // the metadata leader is killed
	gapWriter = "gap-writer" // a volume's writer is killed, and another process opens it
)

// Gap is what clients felt of a fault, each time it was made. One process writes
// 4 KiB blocks and makes each durable, another reads them. In gap-writer nobody
// reads, and the writer is who dies.
type Gap struct {
	Name         string    `json:"name"`
	Faults       int       `json:"faults"`
	LongestWrite float64   `json:"longest_gap_without_write_ms"` // between two writes that were made durable
	MedianWrite  float64   `json:"median_gap_without_write_ms"`
	LongestRead  float64   `json:"longest_read_ms"`
	MedianRead   float64   `json:"median_longest_read_ms"`          // of the longest in each fault
	LongestBack  float64   `json:"longest_until_back_ms,omitempty"` // until a client that came new had opened a volume (gap-leader), or had written to the dead one's (gap-writer)
	MedianBack   float64   `json:"median_until_back_ms,omitempty"`
	Writes       []float64 `json:"gaps_without_write_ms"` // by fault
	Reads        []float64 `json:"longest_reads_ms"`
	Backs        []float64 `json:"until_back_ms,omitempty"`
}

// gapBar is the most that a fault may cost, in milliseconds; 0: no bar.
type gapBar struct{ write, read, back float64 }

func barOf(name string) gapBar {
	return map[string]gapBar{
		gapKill:   {write: 500, read: 100},
		gapStop:   {write: 2500, read: 250},
		gapLeader: {back: 5000},
		gapWriter: {back: 10000},
	}[name]
}

func gapNames() []string { return []string{gapKill, gapStop, gapLeader, gapWriter} }

// gapLoads are the two loads that run through a fault.
func gapLoads() []Case {
	return []Case{
		{Name: "gap-write", Block: 4 * kib, Depth: 2, Write: true, Random: true, Flush: true},
		{Name: "gap-read", Block: 4 * kib, Depth: 2, Random: true, Class: "inference"},
	}
}

// gap makes a fault as often as asked for, all under the same clients.
func (b *bench) gap(ctx context.Context, name string) (err error) {
	switch {
	case b.target.own == nil:
		b.notes = append(b.notes, name+" is left out: servers of a cell that is in use are not stopped")
		return nil
	case name == gapLeader && len(b.target.own.Metas) < 3:
		b.notes = append(b.notes, name+" is left out: where the only metadata server is killed nobody takes over; --metas 3")
		return nil
	}
	g := Gap{Name: name, Writes: []float64{}, Reads: []float64{}}
	once := b.oneWriter
	if name != gapWriter {
		loads, err := b.gapTeam(ctx)
		if err != nil {
			return err
		}
		defer loads.team.dismiss()
		once = loads.once
	}
	for i := range b.Repeat {
		b.tellRun(name, i, nil)
		if err := once(ctx, &g, i); err != nil {
			return errs.Wrap(err, "%s, fault %d", name, i+1)
		}
	}
	g.finish()
	b.gaps = append(b.gaps, g)
	return nil
}

func (g *Gap) finish() {
	g.Faults = max(len(g.Writes), len(g.Backs))
	g.LongestWrite, g.MedianWrite = longest(g.Writes)
	g.LongestRead, g.MedianRead = longest(g.Reads)
	g.LongestBack, g.MedianBack = longest(g.Backs)
}

// longest gives the greatest of some figures, and the middle one.
func longest(list []float64) (most, middle float64) {
	if len(list) == 0 {
		return 0, 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)-1], list[len(list)/2]
}
