package client

import (
	"math/bits"
	"time"
)

const (
	quantileBuckets = 64   // half octaves from 1 µs on
	quantileWindow  = 1024 // samples after which older ones count half
	quantileFew     = 16   // fewer samples say nothing
	quantileStale   = 32   // samples between two looks
)

// quantile follows the 99th percentile of recent durations, and the 10th. The zero
// value is ready.
type quantile struct {
	buckets [quantileBuckets]uint16
	total   int
	fresh   int // samples since the last look
	p99     time.Duration
	fast    time.Duration // the 10th percentile, a lower bound; set with p99
}

func (q *quantile) add(d time.Duration) {
	us := max(uint64(d/time.Microsecond), 1)
	octave := bits.Len64(us) - 1
	half := us << 1 >> octave & 1
	q.buckets[min(2*octave+int(half), quantileBuckets-1)]++
	q.total++
	q.fresh++
	if q.total >= quantileWindow {
		q.total = 0
		for i := range q.buckets {
			q.buckets[i] /= 2
			q.total += int(q.buckets[i])
		}
	}
}

// get is 0 while there are too few samples.
func (q *quantile) get() time.Duration {
	if q.total < quantileFew {
		return 0
	}
	if q.p99 == 0 || q.fresh >= quantileStale {
		q.fresh = 0
		above, seen, i := q.total/100, 0, quantileBuckets-1
		for ; i > 0; i-- {
			if seen += int(q.buckets[i]); seen > above {
				break
			}
		}
		q.p99 = edge(i + 1)
		below, seen := q.total/10, 0
		for i = 0; i < quantileBuckets-1; i++ {
			if seen += int(q.buckets[i]); seen > below {
				break
			}
		}
		q.fast = edge(i)
	}
	return q.p99
}

// edge is the lower end of a bucket.
func edge(i int) time.Duration { return (time.Duration(2+i%2) * time.Microsecond) << (i / 2) / 2 }
