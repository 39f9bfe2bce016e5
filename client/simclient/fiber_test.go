package simclient

import (
	"runtime"
	"testing"
	"weak"
)

// An idle coroutine must hold nothing of the run whose fiber it carried: a bench
// that ran many seeds held gigabytes of cells that were over.
func TestAnIdleCoroutineHoldsNoFiber(t *testing.T) {
	var pool Pool
	defer pool.Close()
	held := run(&pool)
	runtime.GC()
	if held.Value() != nil {
		t.Error("what the fiber's function held is there after its end")
	}
	if len(pool.idle) != 1 {
		t.Errorf("%d idle coroutines, want the one that carried the fiber", len(pool.idle))
	}
}

// run runs a fiber and gives what its function held.
//
//go:noinline
func run(pool *Pool) weak.Pointer[[1 << 20]byte] {
	big := new([1 << 20]byte)
	fibers := Fibers{Pool: pool}
	fibers.Go(func(*Fiber) { big[0]++ })
	return weak.Make(big)
}
