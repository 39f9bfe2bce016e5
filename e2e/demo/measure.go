package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"strake/client"
)

const (
	readBytes  = 4096
	readFor    = 3 * time.Second
	warmReads  = 200
	maxLatency = time.Minute
)

// latency is what a run of small reads took.
type latency struct {
	reads, degraded uint64
	p50, p99        time.Duration
}

// randomReads reads 4 KiB at random places of the imported tree, one at a time,
// with the client library.
func (s *show) randomReads(ctx context.Context) (latency, error) {
	cell, err := s.cell.Dial(ctx)
	if err != nil {
		return latency{}, err
	}
	defer cell.Close()
	vol, err := cell.Open(ctx, "demo", client.OpenOptions{})
	if err != nil {
		return latency{}, err
	}
	defer vol.Close()
	h := hdrhistogram.New(1, maxLatency.Microseconds(), 3)
	buf := make([]byte, readBytes)
	for i, end := 0, time.Now().Add(readFor); time.Now().Before(end); i++ {
		begun := time.Now()
		if _, err := vol.ReadAtContext(ctx, buf, rand.Int64N(s.bytes/readBytes)*readBytes); err != nil {
			return latency{}, err
		}
		if i >= warmReads {
			_ = h.RecordValue(time.Since(begun).Microseconds())
		}
	}
	micros := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond }
	stats := vol.Stats()
	l := latency{reads: stats.Reads, degraded: stats.DegradedReads, p50: micros(50), p99: micros(99)}
	fmt.Printf("    %d reads, %d of them degraded\n", l.reads, l.degraded)
	return l, nil
}

// table prints what was measured, and where things are.
func (s *show) table(ctx context.Context) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("import", "%s\t%s", s.imported.rate(), text(s.imported.bytes))
	row("export", "%s\t%s", s.exported.rate(), text(s.exported.bytes))
	row("export, two servers gone", "%s\t%s", s.degraded.rate(), text(s.degraded.bytes))
	row("import, two servers gone", "%s\t%s", s.late.rate(), text(s.late.bytes))
	row("4 KiB read", "p50 %v\tp99 %v", s.healthyReads.p50, s.healthyReads.p99)
	row("4 KiB read, two servers gone", "p50 %v\tp99 %v\t%d of %d degraded", s.degradedReads.p50, s.degradedReads.p99, s.degradedReads.degraded, s.degradedReads.reads)
	for _, p := range s.cell.Chunkds {
		dir := filepath.Join(s.options.dir, p.Name)
		n, err := diskBytes(dir)
		if err != nil {
			return err
		}
		row(p.Name, "%s on disk\t%s", text(n), dir)
	}
	row("logs", "%s", filepath.Join(s.options.dir, "*.log"))
	if err := t.Flush(); err != nil {
		return err
	}
	if !s.options.keep {
		fmt.Printf("(data and logs go now; go run ./e2e/demo -keep keeps them, -dir DIR puts them elsewhere)\n")
	}
	return nil
}

// diskBytes adds up what a directory's files take on the disk.
func diskBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // it went meanwhile
		}
		n += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	return n, err
}
