package write

import (
	"math/bits"
	"time"
)

const (
	latencyBuckets = 96               // quarter octaves from 1 µs to 16 s
	latencyWindow  = 1024             // samples after which the older half is dropped
	latencyAge     = 10 * time.Second // or this long
	latencyFew     = 16               // fewer samples say nothing
	lateFactor     = 4                // 'a few times its recent p99'
)

// latency is a histogram of recent durations: the window being filled and the
// one before it.
type latency struct {
	now, before [latencyBuckets]uint32
	nowN, n     int // samples in now; in both
	since       time.Duration
	cached      time.Duration
	stale       int // samples since cached was computed
}

func (l *latency) add(now, d time.Duration) {
	if l.nowN >= latencyWindow || now-l.since > latencyAge && l.nowN > 0 {
		l.before, l.now = l.now, [latencyBuckets]uint32{}
		l.n, l.nowN, l.since = l.nowN, 0, now
		l.stale = latencyFew
	}
	l.now[latencyBucket(d)]++
	l.nowN++
	l.n++
	l.stale++
}

// p99 is 0 while there are too few samples.
func (l *latency) p99() time.Duration {
	if l.n < latencyFew {
		return 0
	}
	if l.stale < latencyFew && l.cached != 0 {
		return l.cached
	}
	above := l.n / 100
	i := latencyBuckets - 1
	for seen := 0; i > 0; i-- {
		if seen += int(l.now[i] + l.before[i]); seen > above {
			break
		}
	}
	l.cached, l.stale = latencyUpper(i), 0
	return l.cached
}

// limit is how long an answer may take before it is late.
func (l *latency) limit() time.Duration {
	p := l.p99()
	if p == 0 {
		return MaxLate
	}
	return min(max(lateFactor*p, MinLate), MaxLate)
}

func latencyBucket(d time.Duration) int {
	us := max(uint64(d/time.Microsecond), 1)
	octave := bits.Len64(us) - 1
	quarter := us << 2 >> octave & 3
	return min(4*octave+int(quarter), latencyBuckets-1)
}

// latencyUpper is the upper end of a bucket.
func latencyUpper(i int) time.Duration {
	octave, quarter := i/4, time.Duration(i%4)
	return (5 + quarter) * time.Microsecond << octave / 4
}
