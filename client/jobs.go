package client

import (
	"runtime"
	"sync"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// maxWorkers bounds the workers of one volume.
const maxWorkers = 4

// job is an action of the write core that is done outside the volume's mutex.
type job struct {
	kind       write.Kind
	core       core // whose action it is, and who gets the answer
	stripe     *write.Stripe
	shards     layout.Mask
	parts      [][]byte  // the stripe's payload
	hold       []*buffer // what it lies in, to be released
	sync       *write.Sync
	allocation *write.Allocation
	seal       *stripe.Seal
	server     layout.ServerID
}

// jobQueue runs jobs on a few workers, in no particular order. It is not bounded
// itself: the core bounds stripes in flight, syncs and requests.
type jobQueue struct {
	mu     sync.Mutex
	ready  sync.Cond
	jobs   []job
	closed bool
	done   sync.WaitGroup
}

func (q *jobQueue) start(do func(job)) {
	q.ready.L = &q.mu
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		q.done.Go(func() {
			for j, ok := q.next(); ok; j, ok = q.next() {
				do(j)
			}
		})
	}
}

func (q *jobQueue) push(jobs []job) {
	if len(jobs) == 0 {
		return
	}
	q.mu.Lock()
	q.jobs = append(q.jobs, jobs...)
	q.mu.Unlock()
	q.ready.Broadcast()
}

func (q *jobQueue) next() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && !q.closed {
		q.ready.Wait()
	}
	if len(q.jobs) == 0 {
		return job{}, false
	}
	j := q.jobs[0]
	q.jobs[0] = job{}
	q.jobs = q.jobs[1:]
	return j, true
}

// stop lets the workers finish what is queued and waits for them.
func (q *jobQueue) stop() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ready.Broadcast()
	q.done.Wait()
}
