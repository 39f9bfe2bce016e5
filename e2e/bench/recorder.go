package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"strake/internal/errs"
)

const (
	longestLatency = int64(60 * time.Second) // ns; longer ones count as this
	latencyDigits  = 3
	// timelineStep is the grain of throughput over time.
	timelineStep = 100 * time.Millisecond
	maxTimeline  = 36000 // steps: an hour
)

// newHistogram counts latencies in nanoseconds.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestLatency, latencyDigits)
}

// recorder collects what the slots of one run did.
type recorder struct {
	begin time.Time

	mu       sync.Mutex
	hist     *hdrhistogram.Histogram // guarded by mu
	bytes    int64                   // guarded by mu
	ops      int64                   // guarded by mu
	last     time.Time               // guarded by mu: when the last operation ended
	gap      time.Duration           // guarded by mu: the longest between two ends
	timeline []int64                 // guarded by mu: bytes by timelineStep
	verified int64                   // guarded by mu: whole blocks compared
	unserved int64                   // guarded by mu: operations that were due and did not begin in time
}

func newRecorder(seconds float64) *recorder {
	steps := min(maxTimeline, int(seconds/timelineStep.Seconds())+64)
	return &recorder{hist: newHistogram(), timeline: make([]int64, 0, steps)}
}

// start sets the time that everything counts from.
func (r *recorder) start() { r.begin, r.last = time.Now(), time.Now() }

// add counts one operation that began then and has ended now.
func (r *recorder) add(began time.Time, n int) {
	now := time.Now()
	step := int(now.Sub(r.begin) / timelineStep)
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.hist.RecordValue(min(max(1, int64(now.Sub(began))), longestLatency))
	r.bytes += int64(n)
	r.ops++
	if now.After(r.last) {
		r.gap = max(r.gap, now.Sub(r.last))
		r.last = now
	}
	for len(r.timeline) <= step && step < maxTimeline {
		r.timeline = append(r.timeline, 0)
	}
	if step < maxTimeline {
		r.timeline[step] += int64(n)
	}
}

// missed counts an operation that was due then and has not begun by now: its
// latency is at least that long, and leaving it out would flatter.
func (r *recorder) missed(due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.hist.RecordValue(min(max(1, int64(time.Since(due))), longestLatency))
	r.unserved++
}

func (r *recorder) compared() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verified++
}

// tally is what a run did, as a worker reports it.
type tally struct {
	Bytes    int64
	Ops      int64
	Seconds  float64
	Hist     string  // HdrHistogram V2, compressed, base64; nanoseconds
	Gap      float64 // seconds: the longest without an operation's end
	Timeline []int64
	Verified int64
	Unserved int64 // of an open loop

	Copied        uint64 // payload bytes that went through a buffer of the client
	SystemCalls   uint64 // of the client's connections
	Allocations   uint64 // of the worker, its own loop included
	DegradedReads uint64
	HedgedReads   uint64
	Requests      uint64 // to shards, by reads
	ExtraRequests uint64 // of these, for what other shards should have given
	ExtraBytes    uint64 // asked for by these
}

func (r *recorder) tally() (tally, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	encoded, err := r.hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return tally{}, errs.As(err, errs.Internal, "encode latencies")
	}
	return tally{Bytes: r.bytes, Ops: r.ops, Seconds: r.last.Sub(r.begin).Seconds(), Hist: string(encoded),
		Gap: r.gap.Seconds(), Timeline: r.timeline, Verified: r.verified, Unserved: r.unserved}, nil
}

// histogram decodes the latencies; the encoder of the library gives base64.
func (t tally) histogram() (*hdrhistogram.Histogram, error) {
	h, err := hdrhistogram.Decode([]byte(t.Hist))
	if err != nil {
		return nil, errs.As(err, errs.Internal, "decode latencies")
	}
	return h, nil
}
