package sched

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strake/internal/errs"
)

func TestUncontendedWorkAllocatesNothing(t *testing.T) {
	f, n := NewFIFO(1, 1), 0
	fn := func() { n++ }
	if got := testing.AllocsPerRun(100, func() {
		if err := f.Do(t.Context(), Tag{}, fn); err != nil {
			t.Fatal(err)
		}
	}); got != 0 || n == 0 || f.Load() != 0 {
		t.Errorf("%v allocations, %d runs, load %d", got, n, f.Load())
	}
}

func TestWorkIsBoundedAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFIFO(2, 8)
		var running, most atomic.Int32
		var mu sync.Mutex
		var order []int
		for i := range 10 {
			go func() {
				if err := f.Do(t.Context(), Tag{}, func() {
					most.Store(max(most.Load(), running.Add(1)))
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					time.Sleep(time.Second)
					running.Add(-1)
				}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if f.Load() != 10 {
			t.Errorf("load %d, want 10", f.Load())
		}
		if err := f.Do(t.Context(), Tag{}, func() {}); !errors.Is(err, errs.Overloaded) {
			t.Errorf("an eleventh: got %v, want overloaded", err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for i, got := range order {
			if got != i && got != i^1 { // two run at once and may swap
				t.Errorf("order %v", order)
			}
		}
		if most.Load() != 2 || len(order) != 10 || f.Load() != 0 {
			t.Errorf("at most %d at once, %d ran, load %d", most.Load(), len(order), f.Load())
		}
	})
}

func TestDeadlineAndCancelLeaveNoSlotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFIFO(1, 8)
		busy := func() { time.Sleep(time.Second) }
		never := func() { t.Error("ran") }
		go f.Do(t.Context(), Tag{}, busy)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := f.Do(ctx, Tag{}, never); !errors.Is(err, errs.Deadline) {
			t.Errorf("context ended while waiting: got %v, want deadline", err)
		}
		if err := f.Do(t.Context(), Tag{Deadline: time.Now().Add(time.Millisecond)}, never); !errors.Is(err, errs.Deadline) {
			t.Errorf("deadline passed while waiting: got %v, want deadline", err)
		}
		if f.Load() != 0 {
			t.Errorf("load %d after all have left", f.Load())
		}
	})
}

// TestSlotsSurviveCancelsAtTheHandOff races cancels against hand-offs.
func TestSlotsSurviveCancelsAtTheHandOff(t *testing.T) {
	f := NewFIFO(1, 64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				f.Do(ctx, Tag{}, func() {})
			}
		})
	}
	wg.Wait()
	if f.Load() != 0 {
		t.Errorf("load %d after all have left", f.Load())
	}
}

func BenchmarkUncontended(b *testing.B) {
	f := NewFIFO(0, 0)
	fn := func() {}
	b.ReportAllocs()
	for b.Loop() {
		f.Do(b.Context(), Tag{}, fn)
	}
}
