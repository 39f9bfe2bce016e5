package containers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"strake/e2e/container"
	"strake/e2e/history"
	"strake/e2e/workload"
)

const (
	fighters  = 2
	allOfALog = 1 << 20 // lines
)

// fight is some clients, each in a container of its own, that take one volume from
// each other all along while a test does harm. What they noted must be linearizable.
type fight struct {
	cell  *container.Cell
	nodes []*container.Node
}

// startFight starts it.
func startFight(t *testing.T, c *container.Cell) *fight {
	t.Helper()
	return startFightOf(t, c, stage.images.Loader)
}

// startFightOf is startFight with a build's program.
func startFightOf(t *testing.T, c *container.Cell, image string) *fight {
	t.Helper()
	f := &fight{cell: c}
	seed := fmt.Sprint(c.Rand.Uint64N(1 << 20))
	for n := range fighters {
		f.nodes = append(f.nodes, c.LoadOf(t.Context(), image, fmt.Sprintf("fighter-%d", n), "fight", "--volume", "fought-over", "--seed", seed, "--number", fmt.Sprint(n)))
	}
	f.progress(t, 4)
	return f
}

// notes is what each client wrote.
func (f *fight) notes(t *testing.T) (list []string) {
	t.Helper()
	for _, n := range f.nodes {
		out, err := n.Stdout(t.Context(), allOfALog)
		must(t, err)
		if i := strings.LastIndex(out, "failed "); i >= 0 {
			t.Fatalf("%s %s", n.Name, out[i:])
		}
		list = append(list, out+"\n")
	}
	return list
}

func (f *fight) ended(t *testing.T) (n int) {
	t.Helper()
	for _, notes := range f.notes(t) {
		n += strings.Count(notes, "done ")
	}
	return n
}

// progress waits until n more operations have ended.
func (f *fight) progress(t *testing.T, n int) {
	t.Helper()
	from, now := f.ended(t), 0
	f.cell.Eventually(fmt.Sprintf("%d more operations of the fighters", n), func() bool {
		now = f.ended(t)
		return now >= from+n
	}, func() string { return fmt.Sprintf("%d of them", now-from) })
}

// kill ends all clients at once; restart lets them fight on.
func (f *fight) kill(ctx context.Context, t *testing.T) {
	for _, n := range f.nodes {
		must(t, n.Kill(ctx))
	}
}

func (f *fight) restart(ctx context.Context, t *testing.T) {
	for _, n := range f.nodes {
		must(t, n.Start(ctx))
	}
}

// check judges all that was noted so far.
func (f *fight) check(t *testing.T) {
	t.Helper()
	until := workload.Now()
	var log *history.Log
	f.cell.Eventually("all is noted that the fighters have read", func() bool {
		log = &history.Log{}
		for n, notes := range f.notes(t) {
			log.Add(n, notes)
		}
		log.Until(until)
		return log.Unnoted() == 0
	}, func() string { return fmt.Sprintf("%d reads saw what nobody wrote", log.Unnoted()) })
	if err := log.Check(time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations of %d clients on single blocks are linearizable", log.Len(), fighters)
}
