package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/e2e/workload"
)

const (
	volumeBlocks = 8192 // 32 MiB
	mostBlocks   = 96
)

// TestKilledWriterKeepsEveryFlushedWrite kills a writer at random instants, over
// and over, and checks the volume from another process each time (P1, P2, P3).
func TestKilledWriterKeepsEveryFlushedWrite(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	c := start(t, cluster.Options{})
	create(t, c, "v", volumeBlocks)
	history := workload.NewHistory("v", volumeBlocks)
	first := uint64(1)
	for round := range rounds {
		plan := workload.Plan{Volume: "v", Seed: uint64(round), First: first, Blocks: volumeBlocks, Most: mostBlocks}
		w, out := spawnWriter(t, c, plan)
		eventually(t, "the writer opens the volume", 30*time.Second, func() bool { return strings.HasPrefix(out.String(), "open\n") || !w.Running() })
		upTo := first + 20 + rand.Uint64N(300) // an instant of no meaning
		eventually(t, "the writer has begun some more operations", time.Minute, func() bool {
			began, _ := workload.Progress(out.String())
			return began >= upTo || !w.Running()
		})
		check(t, w.Kill())
		began, flushed := workload.Progress(out.String())
		verifyCrash(t, c, history, plan, flushed, began)
		t.Logf("round %d: operations %d to %d begun, %d flushed, %d there", round, first, began, flushed, history.Last())
		first = max(first, began+1)
	}
	if first < uint64(rounds)*20 {
		t.Errorf("the writers began %d operations in all: too few to mean anything", first-1)
	}
}

// verifyCrash opens a volume whose writer was killed and checks it, first as a
// writer that takes it over, then as a reader.
func verifyCrash(t *testing.T, c *cluster.Cluster, h *workload.History, p workload.Plan, flushed, began uint64) {
	t.Helper()
	cell, err := c.Dial(t.Context())
	check(t, err)
	defer cell.Close()
	vol, err := cell.Open(t.Context(), p.Volume, client.OpenOptions{Write: true, Force: true})
	check(t, err)
	if err := h.Crashed(vol, p, flushed, max(began, p.First-1)); err != nil {
		t.Fatalf("after the writer's end, by the next writer: %v", err)
	}
	check(t, vol.Close())
	again, err := cell.Open(t.Context(), p.Volume, client.OpenOptions{})
	check(t, err)
	if err := h.Check(again); err != nil {
		t.Fatalf("after the writer's end, by a reader: %v", err)
	}
}

// load is a workload of this process that goes on while a test does harm.
type load struct {
	vol    *client.Volume
	plan   workload.Plan
	out    lines
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // set when done
}

func startLoad(t *testing.T, c *cluster.Cluster, name string) *load {
	return startPlan(t, c, workload.Plan{Volume: name, Seed: 1, First: 1, Blocks: volumeBlocks, Most: mostBlocks})
}

func startPlan(t *testing.T, c *cluster.Cluster, p workload.Plan) *load {
	t.Helper()
	create(t, c, p.Volume, volumeBlocks)
	l := &load{vol: open(t, c, p.Volume, client.OpenOptions{Write: true}), plan: p}
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	l.done.Go(func() { l.err = workload.Write(ctx, l.vol, l.plan, &l.out) })
	t.Cleanup(func() {
		cancel()
		within(t, "the end of the workload", l.done.Wait)
	})
	return l
}

// progress waits until n more operations were flushed: the writer goes on.
func (l *load) progress(t *testing.T, n uint64, within time.Duration) {
	t.Helper()
	_, from := workload.Progress(l.out.String())
	eventually(t, fmt.Sprintf("%d more operations flushed", n), within, func() bool {
		_, flushed := workload.Progress(l.out.String())
		return flushed >= from+n
	})
}

// end stops the workload, flushes and closes; nothing may have failed. It gives
// what the volume must hold.
func (l *load) end(t *testing.T) *workload.History {
	t.Helper()
	l.cancel()
	l.done.Wait()
	if !canceled(l.err) {
		t.Fatalf("the workload failed: %v", l.err)
	}
	began, _ := workload.Progress(l.out.String())
	h := workload.NewHistory(l.plan.Volume, volumeBlocks)
	h.Advance(l.plan, began)
	check(t, l.vol.Flush(t.Context()))
	if err := h.Check(l.vol); err != nil {
		t.Fatalf("by the writer itself: %v", err)
	}
	check(t, l.vol.Close())
	return h
}

// verify checks a volume as another process would see it.
func verify(t *testing.T, c *cluster.Cluster, h *workload.History, name string) {
	t.Helper()
	if err := h.Check(open(t, c, name, client.OpenOptions{})); err != nil {
		t.Fatalf("%s, by a reader: %v", name, err)
	}
}

// TestWriterGoesOnWhenMServersDieAtOnce kills two of six servers under a 4+2
// volume's writer. Other volumes, which nobody writes, are read without them: six,
// each a segment of its own, as of one segment the two may hold parity alone.
func TestWriterGoesOnWhenMServersDieAtOnce(t *testing.T) {
	c := start(t, cluster.Options{})
	still := bytes.Repeat([]byte("all work and no play"), 100_000)
	for i := range 6 {
		name := fmt.Sprint("still-", i)
		create(t, c, name, 1024)
		vol := open(t, c, name, client.OpenOptions{Write: true})
		_, err := vol.WriteAt(still, 1000)
		check(t, errors.Join(err, vol.Close()))
	}
	l := startLoad(t, c, "v")
	l.progress(t, 60, 30*time.Second)
	check(t, errors.Join(c.Chunkds[1].Kill(), c.Chunkds[4].Kill()))
	l.progress(t, 60, 30*time.Second)
	h := l.end(t)
	verify(t, c, h, "v")
	degraded := uint64(0)
	for i := range 6 {
		vol := open(t, c, fmt.Sprint("still-", i), client.OpenOptions{})
		got := make([]byte, len(still))
		if _, err := vol.ReadAt(got, 1000); err != nil || !bytes.Equal(got, still) {
			t.Fatalf("volume %d that nobody wrote, with two servers gone: %v", i, err)
		}
		degraded += vol.Stats().DegradedReads
	}
	if degraded == 0 {
		t.Error("no read was degraded though two of its six servers are gone")
	}
	check(t, errors.Join(c.Chunkds[1].Restart(), c.Chunkds[4].Restart()))
	check(t, c.WaitHealthy(t.Context()))
	verify(t, c, h, "v")
}

// TestServersRestartOneByOne restarts every chunk server under a writer.
func TestServersRestartOneByOne(t *testing.T) {
	if testing.Short() {
		t.Skip("the other tests restart servers too")
	}
	c := start(t, cluster.Options{})
	l := startLoad(t, c, "v")
	for i, s := range c.Chunkds {
		l.progress(t, 20, 30*time.Second)
		if i%2 == 0 {
			check(t, s.Stop())
		} else {
			check(t, s.Kill())
		}
		check(t, s.Restart())
		check(t, c.WaitComplete(t.Context()))
	}
	verify(t, c, l.end(t), "v")
}

// TestPausedServerDelaysAndDoesNotStop stops a server for a while without closing
// its connections: the writer moves on.
func TestPausedServerDelaysAndDoesNotStop(t *testing.T) {
	c := start(t, cluster.Options{})
	l := startLoad(t, c, "v")
	l.progress(t, 40, 30*time.Second)
	check(t, c.Chunkds[0].Pause())
	l.progress(t, 40, 30*time.Second)
	check(t, c.Chunkds[0].Resume())
	l.progress(t, 40, 30*time.Second)
	verify(t, c, l.end(t), "v")
}

// TestWholeCellComesBack kills every process at once, the writer too, and starts
// the cell again.
func TestWholeCellComesBack(t *testing.T) {
	c := start(t, cluster.Options{})
	create(t, c, "v", volumeBlocks)
	plan := workload.Plan{Volume: "v", Seed: 3, First: 1, Blocks: volumeBlocks, Most: mostBlocks}
	w, out := spawnWriter(t, c, plan)
	eventually(t, "60 operations flushed", 30*time.Second, func() bool {
		_, flushed := workload.Progress(out.String())
		return flushed >= 60 || !w.Running()
	})
	for _, p := range append(c.Servers(), w) {
		check(t, p.Kill())
	}
	for _, p := range c.Servers() {
		check(t, p.Restart())
	}
	check(t, c.WaitComplete(t.Context()))
	began, flushed := workload.Progress(out.String())
	verifyCrash(t, c, workload.NewHistory("v", volumeBlocks), plan, flushed, began)
}
