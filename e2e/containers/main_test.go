package containers

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"strake/e2e/container"
	"strake/e2e/workload"
)

var (
	wanted = flag.Bool("containers", false, "run the tests, which need Docker")
	seeded = flag.Uint64("seed", 0, "of every choice; 0: a new one")
	bars   = flag.Bool("bars", false, "judge times too: ready in 20 s, a leader in 5 s, no read over 2 s while servers restart or are replaced one by one")
)

// stage is what all tests share: the engine, and the images built once.
var stage struct {
	engine *container.Engine
	images container.Images
	dir    string
	once   sync.Once
	err    error
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := enter(); err != nil {
		fmt.Fprintf(os.Stderr, "\n*** SKIPPED: every test in containers: %v ***\n\n", err)
		*wanted = false
	}
	code := m.Run()
	leave()
	os.Exit(code)
}

// enter finds the engine, when the tests are wanted.
func enter() (err error) {
	if !*wanted {
		return fmt.Errorf("ask for them: make e2e")
	}
	if stage.engine, err = container.Open(context.Background()); err != nil {
		return err
	}
	stage.dir, err = os.MkdirTemp("", "strake-e2e-")
	return err
}

func leave() {
	if stage.engine != nil {
		if err := stage.engine.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "clean up:", err)
		}
	}
	if stage.dir != "" {
		os.RemoveAll(stage.dir)
	}
}

// images gives what is needed of a test, or skips it.
func images(t *testing.T) container.Images {
	t.Helper()
	if !*wanted {
		t.Skip("no containers")
	}
	stage.once.Do(func() { stage.images, stage.err = stage.engine.Build(t.Context(), stage.dir) })
	if stage.err != nil {
		t.Fatal(stage.err)
	}
	return stage.images
}

// seed is the test's.
func seed() uint64 {
	if *seeded != 0 {
		return *seeded
	}
	return rand.Uint64N(1 << 32)
}

// start starts a cell.
func start(t *testing.T, opts container.Options) *container.Cell {
	t.Helper()
	opts.Images = images(t)
	return stage.engine.Start(t, seed(), opts)
}

// load is a workload that goes on while a test does harm.
type load struct {
	t       *testing.T
	cell    *container.Cell
	node    *container.Node
	plan    []string
	checker string // the image of the program that checks the volume
	rolling bool   // no read may take over 2 s, with -bars: servers are restarted or replaced in turn
}

var volumes struct {
	sync.Mutex
	last int
}

// startLoad starts a workload on a volume of its own and waits until it writes.
func startLoad(t *testing.T, c *container.Cell) *load {
	t.Helper()
	return startLoadOf(t, c, stage.images.Loader)
}

// startLoadOf is startLoad with a build's program.
func startLoadOf(t *testing.T, c *container.Cell, image string) *load {
	t.Helper()
	volumes.Lock()
	volumes.last++
	name := fmt.Sprintf("v%d", volumes.last)
	volumes.Unlock()
	l := &load{t: t, cell: c, checker: stage.images.Loader, plan: []string{"--volume", name, "--seed", fmt.Sprint(c.Rand.Uint64N(1 << 20)), "--blocks", "4096"}}
	l.node = c.LoadOf(t.Context(), image, "load-"+name, append([]string{"write"}, l.plan...)...)
	l.progress(40)
	return l
}

// reached tells what the workload said last.
func (l *load) reached() (began, flushed uint64) {
	l.t.Helper()
	out, err := l.node.Stdout(l.t.Context(), 200)
	if err != nil {
		l.t.Fatal(err)
	}
	if i := strings.Index(out, "failed "); i >= 0 {
		l.t.Fatalf("the workload %s", out[i:])
	}
	return workload.Progress(out + "\n")
}

// progress waits until n more operations were flushed, which tells how long that
// took.
func (l *load) progress(n uint64) time.Duration {
	l.t.Helper()
	_, from := l.reached()
	begun := time.Now()
	l.cell.Eventually(fmt.Sprintf("%d more operations of %s are flushed", n, l.node.Name), func() bool {
		_, flushed := l.reached()
		return flushed >= from+n
	}, nil)
	took := time.Since(begun)
	l.cell.Note("%s went on after %v", l.node.Name, took.Round(10*time.Millisecond))
	return took
}

// end ends the workload: nothing may have failed, and the volume must hold all
// that was written, as the writer sees it and as another does.
func (l *load) end() {
	l.t.Helper()
	if err := l.node.Stop(l.t.Context()); err != nil {
		out, _ := l.node.Stdout(l.t.Context(), 5)
		l.t.Fatalf("%v: %s", err, out)
	}
	out, err := l.node.Stdout(l.t.Context(), 4000)
	if err != nil {
		l.t.Fatal(err)
	}
	var began, reads, slowest uint64
	if _, err := fmt.Sscanf(out[max(0, strings.LastIndex(out, "ended ")):], "ended began %d reads %d slowest %d", &began, &reads, &slowest); err != nil {
		l.t.Fatalf("the workload's last words: %q: %v", out[max(0, len(out)-200):], err)
	}
	l.t.Logf("%s: %d operations, %d reads, the slowest %d ms, %d over half a second", l.node.Name, began, reads, slowest, strings.Count(out, "slow read"))
	if *bars && l.rolling && slowest > 2000 {
		l.t.Errorf("a read took %d ms", slowest)
	}
	l.verify(append([]string{"check", "--last", fmt.Sprint(began)}, l.plan...))
}

// crash kills the workload; the volume must hold a prefix with all that was flushed.
func (l *load) crash() (verify func()) {
	l.t.Helper()
	if err := l.node.Kill(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	began, flushed := l.reached()
	return func() {
		l.t.Helper()
		l.verify(append([]string{"crashed", "--flushed", fmt.Sprint(flushed), "--began", fmt.Sprint(max(began, flushed))}, l.plan...))
	}
}

// verify runs a check of the volume to its end.
func (l *load) verify(args []string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), container.Patience)
	defer cancel()
	check := l.cell.LoadOf(ctx, l.checker, fmt.Sprintf("%s-%s-%d", args[0], l.node.Name, time.Now().UnixMilli()%100000), args...)
	code, err := check.Wait(ctx)
	if err != nil || code != 0 {
		out, _ := check.Stdout(context.Background(), 20)
		l.t.Fatalf("%v: exit %d, %v: %s", args, code, err, out)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
