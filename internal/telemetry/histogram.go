package telemetry

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// schema of the native histograms: two buckets for each doubling, as the devices'
// own histograms have.
const schema = 1

// Histogram makes a native histogram, in seconds, of counts by bucket; end gives
// where each ends. Buckets that are even within a doubling, not geometric, go to
// the one that holds their middle: at most half a bucket off.
func Histogram(desc *prometheus.Desc, counts []uint64, sum time.Duration, end func(i int) time.Duration, labels ...string) prometheus.Metric {
	buckets, total := map[int]int64{}, uint64(0)
	begin := time.Duration(0)
	for i, n := range counts {
		to := end(i)
		if n > 0 {
			middle := math.Sqrt(max(begin.Seconds(), 1e-7) * to.Seconds())
			buckets[int(math.Ceil(math.Log2(middle)*(1<<schema)))] += int64(n)
			total += n
		}
		begin = to
	}
	m, err := prometheus.NewConstNativeHistogram(desc, total, sum.Seconds(), buckets, nil, 0, schema, 0, time.Time{}, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}
