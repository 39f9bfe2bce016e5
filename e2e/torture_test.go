package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"strake/e2e/cluster"
	"strake/e2e/disks"
	"strake/e2e/workload"
)

var (
	tortureMinutes = flag.Int("torture.minutes", 0, "torture for so long (0: 20 faults)")
	tortureSeed    = flag.Uint64("torture.seed", 0, "replay the faults of a seed (0: draw one)")
)

const (
	tortureServers = 8
	tortureOnDisks = 4  // of them, whose disks are with a disks.Host
	tortureFaults  = 20 // of a test run
	verifyEvery    = 5  // faults

	tortureDiskBytes = 1 << 30 // of a disks.Disk; what is not written takes no memory

	lease = 15 * time.Second
)

// TestTorture does harm to a cell of processes under a verifying writer, fault
// after fault, and every few faults kills the writer and checks the volume (P1, P2,
// P3). At most two servers have lost bytes or are away at a time: one whose shard
// files are damaged, and one that is killed, stands still or has a disk that ails.
// The metadata servers and half of the chunk servers have disks whose power can be
// cut, of all of them at once too.
func TestTorture(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT CHECKED: the long tests torture")
	}
	seed := *tortureSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	h, err := disks.NewHost()
	check(t, err)
	t.Cleanup(func() { check(t, h.Close()) })
	x := &torture{t: t, r: rand.New(rand.NewPCG(seed, 1)), disks: map[string]*disks.Disk{},
		history: workload.NewHistory("v", volumeBlocks), began: time.Now(), counts: map[string]int{}}
	x.c = start(t, cluster.Options{Meta: 3, Chunkds: tortureServers, Program: x.program(h)})
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

// program gives servers that have a disk with h this test binary to run.
func (x *torture) program(h *disks.Host) func(string) (string, []string) {
	exe, err := os.Executable()
	check(x.t, err)
	return func(server string) (string, []string) {
		var n int
		if _, err := fmt.Sscanf(server, "chunkd-%d", &n); err == nil && n > tortureOnDisks {
			return "", nil
		}
		x.disks[server] = h.Add(server, tortureDiskBytes)
		return exe, []string{diskEnv + "=" + h.Address()}
	}
}

type torture struct {
	t        *testing.T
	r        *rand.Rand
	c        *cluster.Cluster
	disks    map[string]*disks.Disk // by server
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
		check(x.t, x.c.WaitComplete(x.t.Context()))
	}
}
