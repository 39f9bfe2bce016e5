package bench

import (
	"github.com/HdrHistogram/hdrhistogram-go"
)

// percents are the points of a latency distribution that a result holds.
func percents() []float64 {
	return []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100}
}

// sample is one run of a case as it was measured.
type sample struct {
	Figures
	quantiles [][2]float64
	timeline  []int64 // bytes by timelineStep
}

// newSample adds up what the workers of one run did.
func newSample(tallies []*tally) (*sample, error) {
	s := &sample{}
	all := newHistogram()
	var copied, calls, allocations, requests, extra, extraBytes uint64
	var slowest, rates float64
	for i, t := range tallies {
		h, err := t.histogram()
		if err != nil {
			return nil, err
		}
		all.Merge(h)
		s.Bytes += float64(t.Bytes)
		s.Ops += float64(t.Ops)
		s.Seconds = max(s.Seconds, t.Seconds)
		s.Verified += float64(t.Verified)
		s.DegradedReads += float64(t.DegradedReads)
		s.HedgedReads += float64(t.HedgedReads)
		copied, calls, allocations = copied+t.Copied, calls+t.SystemCalls, allocations+t.Allocations
		requests, extra, extraBytes = requests+t.Requests, extra+t.ExtraRequests, extraBytes+t.ExtraBytes
		rate := ratio(float64(t.Bytes), t.Seconds)
		rates += rate
		if i == 0 || rate < slowest {
			slowest = rate
		}
		s.addTimeline(t.Timeline)
	}
	s.MiBPerS, s.IOPS = ratio(s.Bytes/mib, s.Seconds), ratio(s.Ops, s.Seconds)
	s.SlowestToMean = ratio(slowest, rates/float64(len(tallies)))
	s.Copied, s.SystemCalls, s.Allocations = ratio(float64(copied), s.Bytes), ratio(float64(calls), s.Ops), ratio(float64(allocations), s.Ops)
	s.ExtraRequests, s.ExtraBytes = ratio(float64(extra), float64(requests-extra)), ratio(float64(extraBytes), s.Bytes)
	s.latencies(all)
	return s, nil
}

func (s *sample) addTimeline(steps []int64) {
	for i, n := range steps {
		if i == len(s.timeline) {
			s.timeline = append(s.timeline, 0)
		}
		s.timeline[i] += n
	}
}

// latencies reads the percentiles; histograms count nanoseconds.
func (s *sample) latencies(h *hdrhistogram.Histogram) {
	at := func(percent float64) float64 { return float64(h.ValueAtPercentile(percent)) / 1e3 }
	s.P50, s.P90, s.P99, s.P999, s.Worst = at(50), at(90), at(99), at(99.9), float64(h.Max())/1e3
	for _, p := range percents() {
		s.quantiles = append(s.quantiles, [2]float64{p, rounded(at(p))})
	}
}

// processors sets the figures of processor time: seconds by role.
func (s *sample) processors(seconds map[string]float64) {
	total := seconds[roleClient] + seconds[roleChunkd] + seconds[roleMeta]
	s.CPUPerGiB = ratio(total, s.Bytes/gib)
	s.CPUPerOp = ratio(total*1e6, s.Ops)
	s.ClientCPU = ratio(seconds[roleClient]*1e6, s.Ops)
	s.ChunkdCPU = ratio(seconds[roleChunkd]*1e6, s.Ops)
	s.MetaCPU = ratio(seconds[roleMeta]*1e6, s.Ops)
}

// memory sets the figures of memory, in MiB by role.
func (s *sample) memory(sum, largest map[string]float64) {
	s.PeakMemory = sum[roleClient] + sum[roleChunkd] + sum[roleMeta]
	s.ClientMemory, s.ChunkdMemory = largest[roleClient], largest[roleChunkd]
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// series is all runs of one case.
type series struct {
	outcome Outcome
	samples []*sample
}

// finish gives the outcome of all runs.
func (s *series) finish(repeat int) Outcome {
	runs := make([]Figures, 0, len(s.samples))
	for _, one := range s.samples {
		runs = append(runs, one.Figures)
	}
	out := s.outcome
	var least, greatest Figures
	out.Figures, least, greatest = summarize(runs)
	if repeat > 1 {
		out.Min, out.Max = &least, &greatest
	}
	best := s.samples[0]
	for _, one := range s.samples {
		if distance(one.P50, out.P50) < distance(best.P50, out.P50) {
			best = one
		}
	}
	out.Quantiles = best.quantiles
	return out
}

func distance(a, b float64) float64 { return max(a-b, b-a) }
