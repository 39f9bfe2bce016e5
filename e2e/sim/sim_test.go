package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 0, "run so many seeds (0: what a test run has time for)")
	first = flag.Uint64("first", 1, "the first seed")
	trace = flag.Bool("trace", false, "print every event")
	limit = flag.Duration("for", 0, "begin no seed after so long (0: no limit)")
	goOn  = flag.Bool("on", false, "go on after a seed that failed")
)

// batch runs seeds on all cores, each seed on one.
type batch struct {
	began  time.Time
	mu     sync.Mutex
	next   uint64
	end    uint64
	done   int
	sum    Result // events, operations, faults, virtual time
	rare   map[string]int
	failed []string
}

func (b *batch) take() (seed uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next >= b.end || *limit > 0 && time.Since(b.began) > *limit {
		return 0, false
	}
	b.next++
	return b.next - 1, true
}

func (b *batch) add(seed uint64, r *Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.sum.Events += r.Events
	b.sum.Ops += r.Ops
	b.sum.Faults += r.Faults
	b.sum.Took += r.Took
	for what, n := range r.Rare {
		b.rare[what] += n
	}
	if r.Err != nil {
		b.failed = append(b.failed, failure(seed, r))
		if !*goOn {
			b.end = min(b.end, b.next) // what is under way ends
		}
	}
}

func failure(seed uint64, r *Result) string {
	text := fmt.Sprintf("seed %d: %v\nthe last events:\n", seed, r.Err)
	for _, l := range r.Tail {
		text += l + "\n"
	}
	return text + fmt.Sprintf("replay: make sim SEED=%d", seed)
}

func (b *batch) run(o Options) {
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			bench := NewBench()
			defer bench.Close()
			for seed, ok := b.take(); ok; seed, ok = b.take() {
				o := o
				o.Seed = seed
				r := bench.Run(o)
				b.add(seed, &r)
			}
		})
	}
	wait.Wait()
}

// TestMain lets garbage pile up: runs are short and make much of it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func TestSeeds(t *testing.T) {
	b := &batch{next: *first, rare: map[string]int{}}
	switch {
	case *seeds > 0:
		b.end = *first + uint64(*seeds)
	case testing.Short():
		b.end = *first + 20
	default:
		b.end = *first + 500
	}
	o := Options{}
	if *trace {
		o.Trace = os.Stdout
	}
	b.began = time.Now()
	b.run(o)
	took := time.Since(b.began)
	n := max(b.done, 1)
	t.Logf("%d seeds in %.1f s: %.1f seeds/s; a seed has %d events, %d operations, %d faults, %.0f virtual seconds\n%s",
		b.done, took.Seconds(), float64(b.done)/took.Seconds(), b.sum.Events/n, b.sum.Ops/n, b.sum.Faults/n,
		b.sum.Took.Seconds()/float64(n), CountersText(b.rare))
	for _, f := range b.failed {
		t.Error(f)
	}
	if b.done >= enoughToReach {
		for _, what := range mustReach {
			if b.rare[what] == 0 {
				t.Errorf("not reached in %d seeds: %s", b.done, what)
			}
		}
	}
}

// enoughToReach is in how many seeds each of mustReach must happen.
const enoughToReach = 1000

// mustReach is what a batch of seeds must have seen to prove anything.
var mustReach = []string{
	"a stripe falls", "a stripe stands with a shard missing", "rolled forward by a tail copy", "undecidable for now",
	"a second recoverer", "a fence on a shard that was never written", "an incarnation changed before a flush", "k narrowed",
	"a rebuild that lost its target", "a stale generation refused", "a move by time-out refused for budget",
	"a shard rebuilt elsewhere", "a shard repaired in its place", "a leftover removed", "a scrub found a bad shard",
	"a recoverer died before it sealed its tail", "a tail recovered that nobody had sealed", "what stands is out of reach for now",
	"an older generation made way for a rebuild",
	"a relocation raced by a write", "a snapshot barrier refused", "a rollback under an old snapshot",
	"a discard recovered with m servers gone", "a flush while stripes are in flight", "a silent server left without the budget",
	"a shard moved by a rebalance", "a removed snapshot read on", "a clone flattened", "a volume cleaned by a janitor",
	"what snapshots hold for now was emptied", "nothing left but what is live",
}

func TestSameSeedSameLog(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		one, two := NewBench().Run(Options{Seed: seed}), NewBench().Run(Options{Seed: seed})
		if one.Hash != two.Hash || one.Events != two.Events {
			t.Errorf("seed %d: %d events with hash %x, then %d with %x", seed, one.Events, one.Hash, two.Events, two.Hash)
		}
	}
}
