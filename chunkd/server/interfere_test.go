package server

import (
	"testing"
	"time"

	"strake/chunkd/sched/mclock"
	"strake/internal/layout"
)

// TestInferenceStaysQuickBesideBulk runs 4 KiB reads beside 1 MiB reads and beside
// 4 MiB writes, each with and without quality of service. Times are the emulated
// device's.
func TestInferenceStaysQuickBesideBulk(t *testing.T) {
	if testing.Short() {
		t.Skip("moves some hundred MiB")
	}
	alone := interfere(t, false, 29*time.Millisecond, nil)
	t.Logf("alone: p50 %v p99 %v", alone.p50, alone.p99)
	for _, c := range []struct {
		name      string
		every     time.Duration // a read
		aggressor func(*bench)
		times     float64 // of alone, at most
		better    float64 // than FIFO, at least
	}{
		{"1 MiB reads", 29 * time.Millisecond, (*bench).trainingReads, 2.5, 10},
		{"4 MiB writes", 211 * time.Millisecond, (*bench).checkpointWrites, 2.5, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			qos, fifo := interfere(t, false, c.every, c.aggressor), interfere(t, true, c.every, c.aggressor)
			t.Logf("QoS:  p50 %v p99 %v, aggressor %.1f MiB/s, width %d, quanta %v, cost %+v", qos.p50, qos.p99, qos.rate, qos.stats.Width, qos.stats.Quantum, qos.stats.Cost)
			t.Logf("FIFO: p50 %v p99 %v, aggressor %.1f MiB/s", fifo.p50, fifo.p99, fifo.rate)
			if got := float64(qos.p99) / float64(alone.p99); got > c.times {
				t.Errorf("p99 is %.1f times that alone, want %.1f at most", got, c.times)
			}
			if got := float64(fifo.p99) / float64(qos.p99); got < c.better {
				t.Errorf("p99 is %.1f times better than without, want %.1f at least", got, c.better)
			}
			if qos.rate < 0.8*fifo.rate {
				t.Errorf("the aggressor has %.1f MiB/s, without %.1f", qos.rate, fifo.rate)
			}
			if f := flowOf(qos.stats, layout.ClassInference); f.Reads < 60 || f.Queue.Count() < f.Reads || f.Late+f.Refused > 0 {
				t.Errorf("counted %d reads, %d times in the queue, %d late, %d refused", f.Reads, f.Queue.Count(), f.Late, f.Refused)
			}
		})
	}
}

func flowOf(s mclock.Stats, class layout.Class) (f mclock.FlowStats) {
	for _, f = range s.Flows {
		if f.Class == class {
			return f
		}
	}
	return mclock.FlowStats{}
}
