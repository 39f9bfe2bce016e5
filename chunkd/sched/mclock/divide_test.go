package mclock

import (
	"testing"
	"time"

	"strake/internal/qos"
)

// cluster is servers of one device each. A job's load comes to them unevenly; a
// greedy one of a thousand times its weight wants all of each.
type cluster struct {
	disks []*disk
	jobs  []*load // by disk
	total int64   // that is reserved for the job, operations a second
	last  []qos.Rate
}

// newCluster makes n servers of 1000 operations a second; hot of them get 90 % of
// the job's requests.
func newCluster(t *testing.T, n, hot int, total int64) *cluster {
	c := &cluster{total: total, last: make([]qos.Rate, n)}
	for range n {
		job := &load{Key: flowOf(one, 1), bytes: 4096}
		greedy := &load{Key: flowOf(four, 1), bytes: 4096, depth: 64}
		d := newDisk(t, Options{}, job, greedy).perOp(1000)
		d.set(four, Params{Weight: 1000})
		c.disks, c.jobs = append(c.disks, d), append(c.jobs, job)
	}
	c.skew(0, hot)
	return c
}

// skew has servers from a first on get 90 % of the job's requests.
func (c *cluster) skew(first, hot int) {
	n := len(c.jobs)
	for i, job := range c.jobs {
		rate := 0.1 * float64(c.total) / float64(n-hot)
		if (i-first+n)%n < hot {
			rate = 0.9 * float64(c.total) / float64(hot)
		}
		job.every, job.next = time.Duration(float64(time.Second)/rate), c.disks[i].now
	}
}

// second runs all servers for one. With divided, the parts then follow what was
// asked for, as the metadata leader has them do; else they are even.
func (c *cluster) second(divided bool) {
	demand := make([]qos.Rate, len(c.disks))
	for i, d := range c.disks {
		d.run(time.Second)
		for _, f := range d.core.Stats().Flows {
			if f.Class == one {
				demand[i].Ops = int64(f.Reads) - c.last[i].Ops + int64(f.Waiting)
				c.last[i].Ops = int64(f.Reads)
			}
		}
	}
	if !divided {
		demand = make([]qos.Rate, len(c.disks))
	}
	for i, part := range (qos.Rate{Ops: c.total}).Divide(demand) {
		c.disks[i].set(one, Params{Reservation: part, Weight: 1})
	}
}

// served is what the job got since the last reset.
func (c *cluster) served() (sum int64) {
	for _, job := range c.jobs {
		sum += job.ops
	}
	return sum
}

func (c *cluster) reset() {
	for _, d := range c.disks {
		d.reset()
	}
}

// TestDividingByDemandMeetsAReservationOverSkewedServers: 90 % of a job's requests
// go to a tenth of the servers. Even parts give it little more than a fifth of what
// was reserved; parts that follow demand give it all, also when the skew moves.
func TestDividingByDemandMeetsAReservationOverSkewedServers(t *testing.T) {
	for _, n := range []int{10, 20, 40} {
		hot := n / 10
		total := int64(900 * hot)
		even, divided := newCluster(t, n, hot, total), newCluster(t, n, hot, total)
		for range 3 {
			even.second(false)
			divided.second(true)
		}
		even.reset()
		divided.reset()
		for range 5 {
			even.second(false)
			divided.second(true)
		}
		if got := float64(even.served()) / float64(5*total); got > 0.4 {
			t.Errorf("%d servers, even parts: %.2f of the reservation, so that this test shows nothing", n, got)
		}
		within(t, "divided by demand", float64(divided.served()), float64(5*total), 0.05)
		divided.skew(n/2, hot)
		divided.second(true)
		divided.second(true)
		divided.reset()
		for range 5 {
			divided.second(true)
		}
		within(t, "two seconds after the skew moved", float64(divided.served()), float64(5*total), 0.05)
	}
}
