package sim

import (
	"runtime"
	"testing"
)

// A run leaves nothing behind but its bench.
func TestARunLeavesNoGoroutineBehind(t *testing.T) {
	bench := NewBench()
	defer bench.Close()
	bench.Run(Options{Seed: 1, Ops: 100})
	before := runtime.NumGoroutine()
	for seed := uint64(2); seed < 6; seed++ {
		bench.Run(Options{Seed: seed, Ops: 100})
	}
	if n := runtime.NumGoroutine(); n > before+4 {
		buf := make([]byte, 1<<20)
		t.Fatalf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
