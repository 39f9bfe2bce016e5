package bench

import (
	"context"
	"time"

	"strake/internal/errs"
)

// Fault is throughput over time while one chunk server is killed in the middle.
type Fault struct {
	Name     string    `json:"name"`
	StepMs   int64     `json:"step_ms"`
	MiBPerS  []float64 `json:"mib_per_s"` // by step
	KilledAt float64   `json:"killed_at_s"`
}

// faultCases are what runs while a server is killed.
func faultCases() []string { return []string{"seqread-4m", "randread-4k-qd32"} }

// allFaults runs each case while a server is killed, and starts it again.
func (b *bench) allFaults(ctx context.Context) error {
	for _, name := range faultCases() {
		for _, c := range healthy() {
			if c.Name != name {
				continue
			}
			if err := b.fault(ctx, c); err != nil {
				return errs.Wrap(err, "case %s with a server killed", name)
			}
			if err := b.target.restart(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) fault(ctx context.Context, c Case) error {
	b.tell("fault-"+c.Name, nil)
	jobs, _, err := b.jobs(ctx, c)
	if err != nil {
		return err
	}
	t, err := b.crew.hireTeam(len(jobs))
	if err != nil {
		return err
	}
	defer t.dismiss()
	if _, err := t.all(ctx, func(i int) order { return order{Do: orderOpen, Job: jobs[i]} }); err != nil {
		return err
	}
	if _, err := t.all(ctx, same(order{Do: orderWarm})); err != nil {
		return err
	}
	seconds := 2 * b.Seconds
	killed := make(chan error, 1)
	kill := time.AfterFunc(time.Duration(b.Seconds*float64(time.Second)), func() { killed <- b.target.kill() })
	defer kill.Stop()
	reports, err := t.all(ctx, same(order{Do: orderRun, Seconds: seconds}))
	if err != nil {
		return err
	}
	if err := <-killed; err != nil {
		return err
	}
	s := &sample{}
	for _, r := range reports {
		s.addTimeline(r.Tally.Timeline)
	}
	f := Fault{Name: c.Name, StepMs: timelineStep.Milliseconds(), KilledAt: b.Seconds}
	for _, n := range s.timeline[:min(len(s.timeline), int(seconds/timelineStep.Seconds()))] {
		f.MiBPerS = append(f.MiBPerS, rounded(float64(n)/mib/timelineStep.Seconds()))
	}
	b.faults = append(b.faults, f)
	return nil
}
