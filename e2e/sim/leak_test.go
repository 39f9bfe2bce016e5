package sim

import (
	"runtime"
	"testing"
	"weak"
)

// A run leaves nothing behind but its bench, and a bench that is closed nothing.
func TestARunLeavesNoGoroutineBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := uint64(1); seed < 6; seed++ {
		bench := NewBench()
		bench.Run(Options{Seed: seed, Ops: 100})
		bench.Close()
	}
	if n := runtime.NumGoroutine(); n > before+4 {
		buf := make([]byte, 16<<10)
		t.Fatalf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}

// A bench that goes on holds no run that is over: batches run thousands.
func TestABenchHoldsNoRunThatIsOver(t *testing.T) {
	bench := NewBench()
	defer bench.Close()
	const runs = 6
	var held [runs]weak.Pointer[Sim]
	for i := range held {
		s := bench.newSim(Options{Seed: uint64(i + 1), Ops: 100})
		held[i] = weak.Make(s)
		s.play()
	}
	runtime.GC()
	runtime.GC() // the second takes what a sync.Pool kept
	for i, p := range held {
		if p.Value() != nil {
			t.Errorf("the run of seed %d is held", i+1)
		}
	}
}
