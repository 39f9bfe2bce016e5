package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/cluster"
	"strake/e2e/workload"
)

var (
	tortureMinutes = flag.Int("torture.minutes", 0, "torture for so long (0: 20 faults)")
	tortureSeed    = flag.Uint64("torture.seed", 0, "replay the faults of a seed (0: draw one)")
)

const (
	tortureServers = 8
	tortureFaults  = 20 // of a test run
	verifyEvery    = 5  // faults
	lease          = 15 * time.Second
)

// TestTorture does harm to a cell of processes under a verifying writer, fault
// after fault, and every few faults kills the writer and checks the volume (P1, P2,
// P3). At most two servers have lost bytes or are away at a time: one whose shard
// files are damaged, and one that is killed or stands still.
func TestTorture(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT CHECKED: the long tests torture")
	}
	seed := *tortureSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	x := &torture{t: t, r: rand.New(rand.NewPCG(seed, 1)), c: start(t, cluster.Options{Meta: 3, Chunkds: tortureServers}),
		history: workload.NewHistory("v", volumeBlocks), began: time.Now()}
	defer func() {
		if t.Failed() {
			t.Logf("replay: make torture SEED=%d (the faults are the same, their instants are not)\ntimeline:\n%s\nlogs: %s", seed, strings.Join(x.timeline, "\n"), x.c.Dir())
		}
	}()
	create(t, x.c, "v", volumeBlocks)
	x.spawn()
	until := time.Now().Add(time.Duration(*tortureMinutes) * time.Minute)
	for n := 1; n <= tortureFaults || time.Now().Before(until); n++ {
		x.fault()
		if n%verifyEvery == 0 {
			x.verify()
		}
	}
	x.heal()
	x.verify()
	check(t, x.writer.Kill())
	t.Logf("%d faults in %.0f s: %v; %d operations there at the end", len(x.timeline), time.Since(x.began).Seconds(), x.counts, x.history.Last())
}

type torture struct {
	t        *testing.T
	r        *rand.Rand
	c        *cluster.Cluster
	history  *workload.History
	plan     workload.Plan
	writer   *cluster.Process
	out      *lines
	began    time.Time
	timeline []string
	counts   map[string]int
	restore  func() error // ends the fault that lasts; nil: none does
	due      time.Time    // of restore
}

// damagedServer is the one whose files are damaged.
const damagedServer = tortureServers - 1

func (x *torture) note(what string, who *cluster.Process) {
	if x.counts == nil {
		x.counts = map[string]int{}
	}
	x.counts[what]++
	x.timeline = append(x.timeline, fmt.Sprintf("%8.3f %s %s", time.Since(x.began).Seconds(), what, who.Name))
}

// spawn starts the next writer and waits until it writes.
func (x *torture) spawn() {
	x.plan = workload.Plan{Volume: "v", Seed: x.r.Uint64(), First: x.history.Last() + 1, Blocks: volumeBlocks, Most: mostBlocks, Every: 2 * time.Millisecond}
	x.writer, x.out = spawnWriter(x.t, x.c, x.plan)
	x.progress(1)
}

// progress waits until n more operations are flushed.
func (x *torture) progress(n uint64) {
	x.t.Helper()
	_, from := workload.Progress(x.out.String())
	eventually(x.t, fmt.Sprintf("%d more operations flushed (writer: %s)", n, x.writer.Tail(5)), 2*time.Minute, func() bool {
		_, flushed := workload.Progress(x.out.String())
		return flushed >= from+n && flushed > 0
	})
}

// verify kills the writer, checks the volume from another process's view, and goes
// on with a new writer.
func (x *torture) verify() {
	x.t.Helper()
	check(x.t, x.writer.Kill())
	began, flushed := workload.Progress(x.out.String())
	verifyCrash(x.t, x.c, x.history, x.plan, flushed, began)
	x.spawn()
}

// heal ends the fault that lasts.
func (x *torture) heal() {
	if x.restore != nil {
		time.Sleep(time.Until(x.due))
		check(x.t, x.restore())
		x.restore = nil
		check(x.t, x.c.WaitStatus(x.t.Context(), "every server up", func(s client.CellStatus) bool { return int(s.ServersUp) == tortureServers }))
	}
}

// fault does one harm. One that lasts goes on under those that don't, until the
// next that lasts.
func (x *torture) fault() {
	x.t.Helper()
	victim := x.c.Chunkds[x.r.IntN(damagedServer)]
	switch n := x.r.IntN(100); {
	case n < 25:
		x.heal()
		x.note("SIGKILL", victim)
		check(x.t, victim.Kill())
		x.later(func() error { return victim.Restart() }, time.Duration(x.r.IntN(4000))*time.Millisecond)
	case n < 35:
		x.heal()
		x.note("restart", victim)
		check(x.t, errors.Join(victim.Stop(), victim.Restart()))
		x.later(func() error { return nil }, 0) // it is up before the next that lasts
	case n < 55:
		x.heal()
		x.note("SIGSTOP", victim)
		check(x.t, victim.Pause())
		x.later(victim.Resume, x.pause())
	case n < 65:
		leader, err := x.c.Leader(x.t.Context())
		check(x.t, err)
		x.note("SIGKILL leader", leader)
		check(x.t, errors.Join(leader.Kill(), leader.Restart()))
	case n < 72:
		meta := x.c.Metas[x.r.IntN(len(x.c.Metas))]
		x.note("SIGSTOP meta", meta)
		check(x.t, meta.Pause())
		time.Sleep(time.Duration(x.r.IntN(3000)) * time.Millisecond)
		check(x.t, meta.Resume())
	case n < 80:
		x.note("SIGSTOP writer", x.writer)
		check(x.t, x.writer.Pause())
		time.Sleep(time.Duration(x.r.IntN(5000)) * time.Millisecond)
		check(x.t, x.writer.Resume())
	case n < 90:
		x.damage("corrupt a shard file", func(path string) error { return corrupt(path, x.r) })
	default:
		x.damage("delete a shard file", os.Remove)
	}
	x.progress(5)
}

// pause is how long a process stands still: half a lease, and in long runs twice and
// ten times as long too.
func (x *torture) pause() time.Duration {
	if *tortureMinutes == 0 {
		return lease / 2
	}
	return [...]time.Duration{lease / 2, lease / 2, lease / 2, 2 * lease, 10 * lease}[x.r.IntN(5)]
}

func (x *torture) later(restore func() error, after time.Duration) {
	x.restore, x.due = restore, time.Now().Add(after)
}

// damage does harm to one of the damaged server's shard files.
func (x *torture) damage(what string, harm func(path string) error) {
	files, err := filepath.Glob(filepath.Join(x.c.Dir(), x.c.Chunkds[damagedServer].Name, "shards", "*"))
	check(x.t, err)
	if len(files) == 0 {
		return
	}
	x.note(what, x.c.Chunkds[damagedServer])
	if err := harm(files[x.r.IntN(len(files))]); err != nil && !errors.Is(err, os.ErrNotExist) {
		x.t.Fatal(err)
	}
}

// corrupt flips bytes of a file.
func corrupt(path string, r *rand.Rand) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	for range 8 {
		var b [1]byte
		at := r.Int64N(info.Size())
		if _, err := f.ReadAt(b[:], at); err != nil {
			return err
		}
		b[0] ^= 0x5a
		if _, err := f.WriteAt(b[:], at); err != nil {
			return err
		}
	}
	return nil
}
