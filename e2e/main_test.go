package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strake/client"
	"strake/e2e/cluster"
	"strake/e2e/workload"
)

// writerEnv makes this test binary a writer, to be killed: CELL PLAN.
const writerEnv = "STRAKE_E2E_WRITER"

var builds struct {
	sync.Once
	dir, binary string
	err         error
}

func TestMain(m *testing.M) {
	if address := os.Getenv(diskEnv); address != "" {
		if err := serveOn(address, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		return
	}
	if spec := os.Getenv(writerEnv); spec != "" {
		if err := writer(context.Background(), spec); err != nil {
			fmt.Fprintln(os.Stderr, "writer:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if builds.dir != "" {
		os.RemoveAll(builds.dir)
	}
	os.Exit(code)
}

// binary gives the strake command, built once.
func binary(t testing.TB) string {
	t.Helper()
	builds.Do(func() {
		if builds.dir, builds.err = os.MkdirTemp("", "strake-e2e-"); builds.err == nil {
			builds.binary, builds.err = cluster.Build(context.Background(), builds.dir)
		}
	})
	if builds.err != nil {
		t.Fatal(builds.err)
	}
	return builds.binary
}

// start starts a cell for a test.
func start(t *testing.T, opts cluster.Options) *cluster.Cluster {
	t.Helper()
	opts.Binary = binary(t)
	return cluster.New(t, opts)
}

// writer is the main of a writer process: it opens the volume, taking it over if
// need be, and writes until it is killed.
func writer(ctx context.Context, spec string) error {
	f := strings.Fields(spec)
	var n [4]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(f[2+i], 10, 64); err != nil {
			return err
		}
	}
	cell, err := client.Dial(ctx, client.Config{Addresses: f[0]})
	if err != nil {
		return err
	}
	vol, err := cell.Open(ctx, f[1], client.OpenOptions{Write: true, Force: true})
	if err != nil {
		return err
	}
	fmt.Println("open")
	return workload.Write(ctx, vol, workload.Plan{Volume: f[1], Seed: n[0], First: n[1], Blocks: n[2], Most: n[3]}, os.Stdout)
}

// lines collects a writer's output.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// spawnWriter starts a writer process that follows a plan.
func spawnWriter(t *testing.T, c *cluster.Cluster, p workload.Plan) (*cluster.Process, *lines) {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	out := &lines{}
	w, err := c.Spawn(fmt.Sprintf("writer-%d", p.First), cluster.Program{Binary: exe, Stdout: out,
		Env: []string{fmt.Sprintf("%s=%s %s %d %d %d %d", writerEnv, c.Cell, p.Volume, p.Seed, p.First, p.Blocks, p.Most)}})
	check(t, err)
	return w, out
}

// eventually polls until ok, or fails the test.
func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// dial connects to a cell until the test ends.
func dial(t *testing.T, c *cluster.Cluster) *client.Cell {
	t.Helper()
	cell, err := c.Dial(t.Context())
	check(t, err)
	t.Cleanup(func() { within(t, "the end of a session", func() { cell.Close() }) })
	return cell
}

// within waits for f at a test's end, but not for ever: a test that failed may
// have left a writer that waits for servers.
func within(t *testing.T, what string, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Errorf("not within 20 s: %s", what)
	}
}

// create makes a volume of so many blocks.
func create(t *testing.T, c *cluster.Cluster, name string, blocks int64) {
	t.Helper()
	cell, err := c.Dial(t.Context())
	check(t, err)
	defer cell.Close()
	_, err = cell.CreateVolume(t.Context(), name, client.VolumeOptions{Size: blocks * workload.BlockSize})
	check(t, err)
}

// open opens a volume until the test ends.
func open(t *testing.T, c *cluster.Cluster, name string, o client.OpenOptions) *client.Volume {
	t.Helper()
	vol, err := dial(t, c).Open(t.Context(), name, o)
	check(t, err)
	return vol
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// canceled tells that a workload ended because it was asked to.
func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, client.ErrClosed)
}

// forced opens a volume for writing, from whoever writes it.
var forced = client.OpenOptions{Write: true, Force: true}

// pipeEmpty tells that all that was written into a pipe was read.
func pipeEmpty(t *testing.T, w *os.File) (empty bool) {
	t.Helper()
	raw, err := w.SyscallConn()
	check(t, err)
	check(t, raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		empty = err == nil && n == 0
	}))
	return empty
}
