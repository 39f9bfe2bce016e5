package e2e

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	metadial "strake/internal/dial"
	"strake/internal/tls"
	"strake/proto/pb"
)

var overloadSeconds = flag.Int("overload.seconds", 6, "how long the overload lasts")

const (
	overloadVolumes = 4
	overloadWrite   = 256 << 10 // bytes of a write
	overloadDepth   = 2         // writes of a volume on their way, which is enough for its devices
	overloadTimes   = 10
	mostEarlySeals  = 10
	// overloadOfBar is how long an overload must last for the bar to count: what was
	// measured for a few seconds says little.
	overloadOfBar = time.Minute
)

// TestAnOverloadMovesNoVolumeAround writes to a cell of slow devices as fast as they
// go, then with ten times as many writes on their way, then as before: writers wait,
// and hardly any segment is left before it is full. It tells how fast the cell was
// before and after.
func TestAnOverloadMovesNoVolumeAround(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT CHECKED: the long tests overload a cell")
	}
	c := start(t, cluster.Options{Chunkds: 6, ChunkdArgs: []string{"--emulate-device", "read=20MiB,write=20MiB,iops=2000,latency=100us"}})
	var volumes []*client.Volume
	for i := range overloadVolumes {
		name := fmt.Sprintf("v%d", i)
		create(t, c, name, 256<<20/4096)
		volumes = append(volumes, open(t, c, name, client.OpenOptions{Write: true}))
	}
	usual := time.Duration(*overloadSeconds) * time.Second / 2
	pressed(t, volumes, overloadDepth, usual/2) // segments grow, schedulers learn
	before := pressed(t, volumes, overloadDepth, usual)
	during := pressed(t, volumes, overloadDepth*overloadTimes, 2*usual)
	after := pressed(t, volumes, overloadDepth, usual)
	t.Logf("MiB/s: before %.1f, during %v of %d times as many writes %.1f, in the %v after %.1f: %.0f %%",
		before, 2*usual, overloadTimes, during, usual, after, 100*after/before)
	if 2*usual >= overloadOfBar && after < 0.9*before {
		t.Errorf("%.1f MiB/s after the overload, %.1f before it: less than 90 %%", after, before)
	}
	for i, v := range volumes {
		check(t, v.Close())
		if n, of := earlySeals(t, c, fmt.Sprintf("v%d", i)); n > mostEarlySeals {
			t.Errorf("volume %d: %d of %d segments were sealed before they were full", i, n, of)
		} else {
			t.Logf("volume %d: %d of %d segments were sealed before they were full", i, n, of)
		}
	}
}

// pressed keeps depth writes of each volume on their way for a while, and gives MiB a
// second that were acknowledged.
func pressed(t *testing.T, volumes []*client.Volume, depth int, d time.Duration) float64 {
	t.Helper()
	p := make([]byte, overloadWrite)
	var done atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for _, v := range volumes {
		for n := range depth {
			wg.Go(func() {
				for at := int64(n); time.Since(begun) < d; at += int64(depth) {
					if _, err := v.WriteAt(p, at*overloadWrite%(256<<20)); err != nil {
						t.Error(err)
						return
					}
					done.Add(overloadWrite)
				}
			})
		}
	}
	wg.Wait()
	return float64(done.Load()) / (1 << 20) / time.Since(begun).Seconds()
}

// earlySeals counts a volume's data segments that were sealed with room for a stripe,
// but the last one, which the volume's close seals.
func earlySeals(t *testing.T, c *cluster.Cluster, name string) (early, of int) {
	t.Helper()
	m, err := metadial.NewMeta(c.Cell, tls.Policy{})
	check(t, err)
	defer m.Close()
	check(t, m.Do(t.Context(), func(ctx context.Context, m pb.MetaClient) error {
		v, err := m.GetVolume(ctx, &pb.GetVolumeRequest{Name: name, Tenant: "default"})
		if err != nil {
			return err
		}
		r, err := m.ListSegments(ctx, &pb.ListSegmentsRequest{Volume: v.Volume.Id})
		for _, s := range r.GetSegments() {
			if s.Map || s.GetSeal().GetCount() == 0 {
				continue
			}
			longest := uint64(0)
			for _, sh := range s.Seal.Shards {
				longest = max(longest, sh.Length)
			}
			if of++; longest+1<<20 < s.ShardLength {
				early++
			}
		}
		return err
	}))
	return max(0, early-1), of
}
