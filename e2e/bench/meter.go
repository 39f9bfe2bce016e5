package bench

import (
	"os"
	"time"
)

// Roles of the processes that are accounted.
const (
	roleClient = "client"
	roleChunkd = "chunkd"
	roleMeta   = "meta"
)

// meter accounts for the processes that take part in a run.
type meter struct {
	pids map[string][]int // by role
}

// reading is what the meters showed at one moment.
type reading struct {
	at   time.Time
	cpu  map[string]time.Duration // by role
	own  time.Duration            // all roles and this process
	busy time.Duration            // all cores
}

// read reads the meters. A process that has ended counts for nothing from then
// on: it does not end while a case runs.
func (m meter) read() (reading, error) {
	r := reading{cpu: map[string]time.Duration{}}
	for role, pids := range m.pids {
		for _, pid := range pids {
			t, _ := processTime(pid)
			r.cpu[role] += t
			r.own += t
		}
	}
	self, err := processTime(os.Getpid())
	if err != nil {
		return r, err
	}
	r.own += self
	r.at = time.Now()
	r.busy, err = machineBusy()
	return r, err
}

// used is the processor time by role between two readings, in seconds.
func (r reading) used(since reading) map[string]float64 {
	out := map[string]float64{}
	for role, t := range r.cpu {
		out[role] = (t - since.cpu[role]).Seconds()
	}
	return out
}

// othersBusy is how many cores others kept busy between two readings.
func (r reading) othersBusy(since reading) float64 {
	wall := r.at.Sub(since.at).Seconds()
	return max(0, ((r.busy-since.busy)-(r.own-since.own)).Seconds()/wall)
}

// resetPeaks has the peaks of memory begin again.
func (m meter) resetPeaks() {
	for _, pids := range m.pids {
		for _, pid := range pids {
			resetPeak(pid)
		}
	}
}

// peaks gives the peaks of memory by role, in MiB: the sum, and the largest one.
func (m meter) peaks() (sum, largest map[string]float64) {
	sum, largest = map[string]float64{}, map[string]float64{}
	for role, pids := range m.pids {
		for _, pid := range pids {
			n, _ := peakMemory(pid)
			sum[role] += float64(n) / mib
			largest[role] = max(largest[role], float64(n)/mib)
		}
	}
	return sum, largest
}
