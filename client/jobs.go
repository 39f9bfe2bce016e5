package client

import (
	"runtime"
	"sync"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

const (
	// maxWorkers bounds the workers of one volume.
	maxWorkers = 4
	// smallJob is the most payload of a stripe, in bytes, that whoever brought the
	// event encodes and sends: a connection's goroutine must not do more beside.
	// More goes to a worker, which costs a hop between goroutines.
	smallJob = 128 << 10
	// usualJobs is how many jobs an event seldom exceeds.
	usualJobs = 8
)

// job is an action of the write core that is done outside the volume's mutex.
type job struct {
	kind       write.Kind
	core       core    // whose action it is, and who gets the answer; nil with a flight
	flight     *flight // of Cut, Move, Retry
	sync       *write.Sync
	allocation *write.Allocation
	seal       *stripe.Seal
	server     layout.ServerID
}

// small tells whether the job may be done by whoever brought the event.
func (j *job) small() bool { return j.flight == nil || j.flight.bytes() <= smallJob }

// jobQueue runs jobs on a few workers, in no particular order. It is not bounded
// itself: the core bounds stripes in flight, syncs and requests.
type jobQueue struct {
	mu     sync.Mutex
	ready  sync.Cond
	jobs   fifo[job]
	closed bool
	done   sync.WaitGroup
}

func (q *jobQueue) start(do func(*job)) {
	q.ready.L = &q.mu
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		q.done.Go(func() {
			for j, ok := q.next(); ok; j, ok = q.next() {
				do(&j)
			}
		})
	}
}

func (q *jobQueue) push(j job) {
	q.mu.Lock()
	q.jobs.push(j)
	q.mu.Unlock()
	q.ready.Signal()
}

func (q *jobQueue) next() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.jobs.len() == 0 && !q.closed {
		q.ready.Wait()
	}
	if q.jobs.len() == 0 {
		return job{}, false
	}
	return q.jobs.pop(), true
}

// stop lets the workers finish what is queued and waits for them.
func (q *jobQueue) stop() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ready.Broadcast()
	q.done.Wait()
}
