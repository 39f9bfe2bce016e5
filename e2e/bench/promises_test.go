package bench

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/e2e/cluster"
)

const (
	// The devices that figures of quality of service are stated on.
	promisedDevices = "read=60MiB,write=60MiB,iops=4000,latency=100us"
	// settling is how long loads run before they are looked at: parts follow demand by
	// heartbeats.
	settling = 4
	// A window in seconds, and how many of them; figures are their medians.
	promiseWindow, promiseWindows = 10, 5
)

// BenchmarkPromises is for people: what real processes get of reservations, limits and
// weights on six emulated devices, two loads of 1 MiB reads beside each other. It wants a
// quiet machine: where timers are late, emulated devices are slow.
//
//	go test ./e2e/bench -run '^$' -bench Promises -benchtime 1x
func BenchmarkPromises(b *testing.B) {
	binary, err := cluster.Build(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	p := &promises{b: b, bench: bench{Options: Options{Binary: binary, Chunkds: 6, K: matrixK, M: matrixM, Size: 256 * mib, Seed: 1, Seconds: settling + promiseWindow*promiseWindows,
		Emulate: promisedDevices, Dir: b.TempDir(), Progress: func(Event) {}}, filled: map[string]bool{}, crew: newCrew(binary)}}
	defer p.crew.close()
	if p.target, err = newTarget(b.Context(), p.Options); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := p.target.close(); err != nil {
			b.Error(err)
		}
	}()
	if p.volume, err = p.readVolume(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("limit", p.limit)
	b.Run("weights", p.weights)
	b.Run("reservation", p.reservation)
}

// promises is a cell with two loads.
type promises struct {
	bench
	b      *testing.B
	volume string
}

// set changes a class.
func (p *promises) set(b *testing.B, name string, change func(*client.Class)) {
	b.Helper()
	c, err := p.target.cell.Class(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	change(&c)
	if _, err := p.target.cell.SetClass(b.Context(), c); err != nil {
		b.Fatal(err)
	}
}

// run has processes read in classes at once, each as fast as it can, and gives their
// bytes a second: medians of the windows.
func (p *promises) run(b *testing.B, classes ...string) []float64 {
	b.Helper()
	rates := make([]float64, len(classes))
	var group errgroup.Group
	for i, class := range classes {
		h, err := p.crew.hire()
		if err != nil {
			b.Fatal(err)
		}
		defer h.dismiss()
		j := job{Cell: p.target.address, Volume: p.volume, Case: Case{Block: mib, Depth: 16, Random: true, Class: class}, Size: p.Size, Seed: uint64(i), Clients: 1, Gen: readGen}
		if _, err := h.do(b.Context(), order{Do: orderOpen, Job: &j}); err != nil {
			b.Fatal(err)
		}
		group.Go(func() error {
			r, err := h.do(b.Context(), order{Do: orderRun, Seconds: p.Seconds})
			if err == nil {
				rates[i] = windows(r.Tally.Timeline)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return rates
}

// windows gives the median of bytes a second over the windows of a timeline.
func windows(timeline []int64) float64 {
	const steps = int(time.Second / timelineStep)
	var rates []float64
	for n := range promiseWindows {
		from := (settling + n*promiseWindow) * steps
		sum := int64(0)
		for i := from; i < min(from+promiseWindow*steps, len(timeline)); i++ {
			sum += timeline[i]
		}
		rates = append(rates, float64(sum)/promiseWindow)
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// limit has a class read alone that may have a quarter of the devices.
func (p *promises) limit(b *testing.B) {
	const limit = 90 * mib
	p.set(b, "training", func(c *client.Class) { c.Limit.Bytes = limit })
	defer p.set(b, "training", func(c *client.Class) { c.Limit.Bytes = 0 })
	for range b.N {
		got := p.run(b, "training")
		b.ReportMetric(got[0]/limit, "of-the-limit")
	}
}

// weights has two classes read, of which one has twice the other's weight.
func (p *promises) weights(b *testing.B) {
	p.set(b, "checkpoint", func(c *client.Class) { c.Weight = 200 })
	for range b.N {
		got := p.run(b, "training", "checkpoint")
		b.ReportMetric(got[1]/got[0], "ratio-of-2")
		b.ReportMetric((got[0]+got[1])/mib, "MiB/s")
	}
}

// reservation has a class of next to no weight read what is reserved for it, nine
// tenths of what can be, beside one that takes all it gets.
func (p *promises) reservation(b *testing.B) {
	if _, err := p.target.cell.Calibrate(b.Context(), 0, 5*time.Second); err != nil {
		b.Fatal(err)
	}
	p.set(b, "training", func(c *client.Class) { c.Weight = 1 })
	p.set(b, "checkpoint", func(c *client.Class) { c.Weight = 10000 })
	ask := client.Reservation{Job: "bench", Class: "training", Rate: client.Rate{Bytes: 1}, TTL: time.Hour}
	dry, err := p.target.cell.Reserve(b.Context(), ask, true)
	if err != nil {
		b.Fatal(err)
	}
	ask.Rate.Bytes = dry.Capacity.Bytes * 9 / 10
	if _, err := p.target.cell.Reserve(b.Context(), ask, false); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		got := p.run(b, "training", "checkpoint")
		b.ReportMetric(got[0]/float64(ask.Rate.Bytes), "of-the-reservation")
		b.ReportMetric(float64(ask.Rate.Bytes)/mib, "reserved-MiB/s")
		b.ReportMetric(got[1]/mib, "other-MiB/s")
	}
	b.Logf("the cell can promise %.0f MiB/s", float64(dry.Capacity.Bytes)/mib)
}
