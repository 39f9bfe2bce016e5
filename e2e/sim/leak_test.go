package sim

import (
	"runtime"
	"testing"
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
