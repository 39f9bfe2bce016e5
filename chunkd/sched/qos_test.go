package sched

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
)

// narrow is a scheduler that runs one piece of work at a time.
func narrow() *QoS { return NewQoS(mclock.Options{MaxWidth: 1}) }

func TestUncontendedQoSAllocatesNothing(t *testing.T) {
	q, n := NewQoS(mclock.Options{}), 0
	fn := func() { n++ }
	if got := testing.AllocsPerRun(100, func() {
		if err := q.Do(t.Context(), Tag{Bytes: 4096}, fn); err != nil {
			t.Fatal(err)
		}
		if !q.TryAdmit(Tag{Bytes: 4096}) {
			t.Fatal("not admitted")
		}
		q.Release(Tag{Bytes: 4096})
	}); got != 0 || n == 0 || q.Load() != 0 {
		t.Errorf("%v allocations, %d runs, load %d", got, n, q.Load())
	}
}

// TestInferenceOvertakesWhatWaits: forty training reads wait, an inference read
// that comes last runs next; with FIFO, the control, it runs last.
func TestInferenceOvertakesWhatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		s    Scheduler
		want int
	}{"qos": {narrow(), 1}, "fifo": {NewFIFO(1, 0), 41}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				ran, place := 0, 0
				do := func(class layout.Class) {
					if err := c.s.Do(t.Context(), Tag{Class: class, Tenant: 1, Bytes: 4096}, func() {
						time.Sleep(time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						if class == layout.ClassInference {
							place = ran
						}
						ran++
					}); err != nil {
						t.Error(err)
					}
				}
				for range 41 {
					go do(layout.ClassTraining)
					synctest.Wait()
				}
				do(layout.ClassInference)
				if place != c.want {
					t.Errorf("%d ran before it, want %d", place, c.want)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

func TestLimitsAreKeptByTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQoS(mclock.Options{})
		if err := q.SetClass(16, mclock.Params{Limit: mclock.Rate{Ops: 100}}); err != nil {
			t.Fatal(err)
		}
		var n atomic.Int32
		ctx, cancel := context.WithTimeout(t.Context(), 1005*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for q.Do(ctx, Tag{Class: 16, Bytes: 4096}, func() { n.Add(1) }) == nil {
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		if q.Free(Tag{Class: 16}) || !q.Free(Tag{Class: 17}) && q.Stats().Waiting == 0 {
			t.Error("a flow at its limit is told to be free")
		}
		wg.Wait()
		if got := n.Load(); got < 100 || got > 103 {
			t.Errorf("%d in a second at a limit of 100", got)
		}
		if s := q.Stats(); s.Running+s.Waiting != 0 || s.Flows[0].Throttled < 900*time.Millisecond {
			t.Errorf("%d run, %d wait, throttled for %v", s.Running, s.Waiting, s.Flows[0].Throttled)
		}
	})
}

func TestQoSDeadlineAndCancelLeaveNoTurnBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := narrow()
		never := func() { t.Error("ran") }
		go q.Do(t.Context(), Tag{}, func() { time.Sleep(time.Second) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := q.Do(ctx, Tag{}, never); !errors.Is(err, errs.Deadline) {
			t.Errorf("context ended while waiting: got %v, want deadline", err)
		}
		from := time.Now()
		if err := q.Do(t.Context(), Tag{Deadline: from.Add(time.Millisecond)}, never); !errors.Is(err, errs.Deadline) || time.Since(from) > 2*time.Millisecond {
			t.Errorf("deadline passed while waiting: got %v after %v, want deadline", err, time.Since(from))
		}
		time.Sleep(2 * time.Second)
		if q.Load() != 0 {
			t.Errorf("load %d after all have left", q.Load())
		}
		if err := q.Do(t.Context(), Tag{Deadline: time.Now().Add(time.Millisecond)}, never); !errors.Is(err, errs.Deadline) {
			t.Errorf("1 ms on a device that takes a second: got %v, want deadline", err)
		}
	})
}

func TestWritersWaitAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQoS(mclock.Options{GateBytes: 10, FlowDepth: 2})
		tag := Tag{Class: 16, Write: true, Bytes: 6}
		if !q.TryAdmit(tag) || q.TryAdmit(tag) {
			t.Fatal("one and only one fits")
		}
		var through atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() {
				if q.Admit(ctx, tag) == nil {
					through.Add(1)
				}
			}()
			synctest.Wait()
		}
		if err := q.Admit(ctx, tag); !errors.Is(err, errs.Overloaded) {
			t.Errorf("a third at the gate: %v", err)
		}
		q.Release(tag)
		synctest.Wait()
		if through.Load() != 1 {
			t.Errorf("%d went through after a release", through.Load())
		}
		cancel()
		synctest.Wait()
		q.Release(tag)
		if s := q.Stats().Flows[0]; s.HeldBytes != 0 || s.AtGate != 0 || through.Load() != 1 {
			t.Errorf("%d bytes held, %d at the gate", s.HeldBytes, s.AtGate)
		}
	})
}

// TestTurnsSurviveCancelsAtTheHandOff races cancels against hand-offs.
func TestTurnsSurviveCancelsAtTheHandOff(t *testing.T) {
	q := NewQoS(mclock.Options{MaxWidth: 2, GateBytes: 1})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			tag := Tag{Class: layout.Class(i % 3), Bytes: 4096, Write: true}
			for range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				q.Do(ctx, tag, func() {})
				if q.Admit(ctx, tag) == nil {
					q.Release(tag)
				}
			}
		})
	}
	wg.Wait()
	s := q.Stats()
	for _, f := range s.Flows {
		if f.HeldBytes != 0 || f.AtGate != 0 {
			t.Errorf("%v: %d bytes held, %d at the gate", f.Key, f.HeldBytes, f.AtGate)
		}
	}
	if q.Load() != 0 || q.core.Check() != nil {
		t.Errorf("load %d after all have left: %v", q.Load(), q.core.Check())
	}
}

func TestClassesChangeWhileWorkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQoS(mclock.Options{})
		slow := mclock.Params{Limit: mclock.Rate{Ops: 1}}
		if err := q.SetFlow(mclock.Key{Class: 16}, slow); err != nil {
			t.Fatal(err)
		}
		if err := q.SetClass(16, mclock.Params{Weight: -1}); !errors.Is(err, errs.InvalidArgument) {
			t.Errorf("got %v", err)
		}
		q.Do(t.Context(), Tag{Class: 16}, func() {})
		var done atomic.Bool
		go q.Do(t.Context(), Tag{Class: 16}, func() { done.Store(true) })
		synctest.Wait()
		if done.Load() {
			t.Error("ran over its limit")
		}
		q.ResetFlow(mclock.Key{Class: 16})
		synctest.Wait()
		if !done.Load() {
			t.Error("waits though its limit is gone")
		}
	})
}

func BenchmarkQoSUncontended(b *testing.B) {
	q := NewQoS(mclock.Options{})
	fn := func() {}
	b.ReportAllocs()
	for b.Loop() {
		q.Do(b.Context(), Tag{Bytes: 4096}, fn)
	}
}

// BenchmarkContended has 64 goroutines wait for a device that takes two.
func BenchmarkContended(b *testing.B) {
	for name, s := range map[string]Scheduler{"qos": NewQoS(mclock.Options{MaxWidth: 2}), "fifo": NewFIFO(2, 0)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				fn := func() {}
				for i := 0; pb.Next(); i++ {
					s.Do(b.Context(), Tag{Class: layout.Class(i % 4), Bytes: 4096}, fn)
				}
			})
		})
	}
}
