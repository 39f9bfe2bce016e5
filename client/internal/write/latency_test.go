package write

import (
	"testing"
	"time"
)

func TestLateIsAFewTimesTheRecentP99WithinBounds(t *testing.T) {
	var l latency
	if l.limit() != MaxLate {
		t.Fatalf("without samples: %v", l.limit())
	}
	fill := func(d time.Duration, from time.Duration) {
		for i := range 2 * latencyWindow {
			l.add(from+time.Duration(i)*time.Millisecond, d)
		}
	}
	fill(200*time.Microsecond, 0)
	if l.limit() != MinLate {
		t.Fatalf("at 200 µs: %v", l.limit())
	}
	fill(20*time.Millisecond, time.Minute)
	if got := l.limit(); got < 80*time.Millisecond || got > 100*time.Millisecond {
		t.Fatalf("at 20 ms: %v", got)
	}
	fill(time.Second, time.Hour)
	if l.limit() != MaxLate {
		t.Fatalf("at 1 s: %v", l.limit())
	}
}

func TestLatencyBucketsHoldTheirValues(t *testing.T) {
	for d := time.Microsecond; d < 10*time.Second; d = d*9/8 + time.Microsecond {
		if i := latencyBucket(d); latencyUpper(i) < d-time.Microsecond || latencyUpper(i) > d*3/2+2*time.Microsecond {
			t.Fatalf("%v is in bucket %d up to %v", d, i, latencyUpper(i))
		}
	}
}

func TestRateForgetsAfterAMinute(t *testing.T) {
	var r rate
	for i := range 60 {
		r.add(time.Duration(i)*time.Second, 1<<20)
	}
	if got := r.tenSeconds(59 * time.Second); got != 10<<20 {
		t.Fatalf("ten seconds of 1 MiB/s: %d", got)
	}
	if got := r.tenSeconds(3 * time.Minute); got != 0 {
		t.Fatalf("after a pause: %d", got)
	}
}

func TestRateOfAYoungOrFasterWriterIsItsLatest(t *testing.T) {
	var r rate
	r.add(5*time.Minute, 30<<20)
	if got := r.tenSeconds(5*time.Minute + 100*time.Millisecond); got != 300<<20 {
		t.Fatalf("ten seconds of 30 MiB in the first: %d", got)
	}
	r = rate{}
	for i := range 50 {
		r.add(time.Duration(i)*time.Second, 1<<20)
	}
	for i := range 10 {
		r.add(time.Duration(50+i)*time.Second, 7<<20)
	}
	if got := r.tenSeconds(59 * time.Second); got != 70<<20 {
		t.Fatalf("ten seconds of 7 MiB/s after slower ones: %d", got)
	}
}
