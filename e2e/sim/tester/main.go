//go:build planted

// Command tester tests the tester: it plants one bug after another (see
// internal/planted) and runs seeds of the seeded cluster until a checker
// complains. The checkers know no bug. For each it prints in how many seeds it was
// caught and by which property; the last line is `caught N of M`.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"strake/e2e/sim"
	"strake/internal/planted"
)

func main() {
	most := flag.Uint64("seeds", 1500, "give a bug up after so many seeds")
	first := flag.Uint64("first", 1, "the first seed")
	only := flag.String("bug", "", "plant only the bugs whose name has this in it")
	flag.Parse()
	debug.SetGCPercent(400)
	caught, all := 0, 0
	for _, bug := range planted.All() {
		if !strings.Contains(bug.String(), *only) {
			continue
		}
		all++
		planted.Plant(bug)
		began := time.Now()
		h := hunt(*first, *most)
		if h.complaint != "" {
			caught++
		}
		fmt.Printf("%-48s %s (%.0f s)\n", bug, h.text(*most), time.Since(began).Seconds())
	}
	fmt.Printf("caught %d of %d\n", caught, all)
	if caught < all {
		os.Exit(1)
	}
}

// result is the first complaint of a hunt, by seed.
type result struct {
	seeds     uint64 // run until then
	seed      uint64
	complaint string
}

func (r *result) text(most uint64) string {
	if r.complaint == "" {
		return fmt.Sprintf("not caught in %d seeds", most)
	}
	return fmt.Sprintf("caught in %d seeds, by seed %d: %.160s", r.seeds, r.seed, r.complaint)
}

// hunt runs seeds on all cores until one fails.
func hunt(first, most uint64) (r result) {
	var next, done atomic.Uint64
	var mu sync.Mutex
	var found atomic.Bool
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			bench := sim.NewBench()
			defer bench.Close()
			for !found.Load() {
				n := next.Add(1) - 1
				if n >= most {
					return
				}
				got := bench.Run(sim.Options{Seed: first + n})
				ran := done.Add(1)
				if got.Err == nil {
					continue
				}
				mu.Lock()
				if !found.Swap(true) {
					r = result{ran, first + n, got.Err.Error()}
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return r
}
