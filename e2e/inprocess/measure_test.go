package inprocess

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strake/client"
	"strake/internal/vfs"
)

// latencies are how long calls took.
type latencies []time.Duration

// time runs f and notes how long it took.
func (l *latencies) time(b *testing.B, f func() error) {
	b.Helper()
	begun := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	*l = append(*l, time.Since(begun))
}

// at gives a quantile, 0 to 1; 0 of none.
func (l latencies) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(l)-1, int(q*float64(len(l))))]
}

// report gives the median, the 99th percentile and the longest to a benchmark.
func (l latencies) report(b *testing.B, what string) {
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
		b.ReportMetric(float64(l.at(q).Microseconds())/1e3, what+name+"-ms")
	}
}

// disksIn gives servers their disks as directories below one, so that a sync is one.
func disksIn(dir, kind string) func(int) (vfs.FS, error) {
	return func(server int) (vfs.FS, error) {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d", kind, server))
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		return vfs.NewOS(path)
	}
}

// made creates and opens a volume at 4+2 for writing, for a benchmark; it is closed at
// its end unless it was before.
func made(b *testing.B, cell *client.Cell, name string, size int64) *client.Volume {
	b.Helper()
	if _, err := cell.CreateVolume(b.Context(), name, client.VolumeOptions{Size: size, K: 4, M: 2}); err != nil {
		b.Fatal(err)
	}
	return reopened(b, cell, name, writing)
}

func reopened(b *testing.B, cell *client.Cell, name string, o client.OpenOptions) *client.Volume {
	b.Helper()
	v, err := cell.Open(context.Background(), name, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { v.Close() })
	return v
}

// must ends a benchmark that failed.
func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
