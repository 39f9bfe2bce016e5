package qos

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Rate is an amount of work per second. Zero in either field leaves that unit out.
type Rate struct {
	Bytes int64
	Ops   int64
}

// IsZero tells whether the rate leaves out both units.
func (r Rate) IsZero() bool { return r == Rate{} }

// Params are what work is given. The zero value of each field stands for: no
// reservation, no limit, the weight of the default class, no latency target.
type Params struct {
	Reservation Rate
	Limit       Rate
	Weight      int           // share of what is not reserved, against all others' weights
	Target      time.Duration // how long one request should take at the device while this class is in use
}

// Bounds of parameters. Beyond them a figure is a mistake.
const (
	MaxWeight = 10000
	MaxBytes  = 1 << 50 // a second, in a whole cell
	MaxOps    = 1e12    // a second, in a whole cell
	MinTarget = 10 * time.Microsecond
	MaxTarget = 10 * time.Second

	// DefaultWeight is that of work whose class has none.
	DefaultWeight = 100
)

// Check refuses parameters that contradict each other or can't be meant.
// Errors: InvalidArgument, naming the figure.
func (p Params) Check() error {
	for _, r := range []struct {
		name string
		rate Rate
	}{{"reservation", p.Reservation}, {"limit", p.Limit}} {
		if err := r.rate.check(r.name); err != nil {
			return err
		}
	}
	below := func(limit, reservation int64) bool { return limit > 0 && limit < reservation }
	switch {
	case below(p.Limit.Bytes, p.Reservation.Bytes) || below(p.Limit.Ops, p.Reservation.Ops):
		return refuse("limit of %d bytes/s, %d ops/s is below the reservation of %d bytes/s, %d ops/s",
			p.Limit.Bytes, p.Limit.Ops, p.Reservation.Bytes, p.Reservation.Ops).WithHint("raise the limit, or give 0 for none")
	case p.Weight < 0 || p.Weight > MaxWeight:
		return refuse("weight %d, want 1 to %d", p.Weight, MaxWeight)
	case p.Target != 0 && (p.Target < MinTarget || p.Target > MaxTarget):
		return refuse("latency target %v, want %v to %v", p.Target, MinTarget, MaxTarget)
	}
	return nil
}

// check refuses a rate that can't be meant.
func (r Rate) check(name string) error {
	switch {
	case r.Bytes < 0 || r.Ops < 0:
		return refuse("%s of %d bytes/s, %d ops/s: less than nothing", name, r.Bytes, r.Ops).WithHint("give 0 for no %s", name)
	case r.Bytes > MaxBytes || r.Ops > MaxOps:
		return refuse("%s of %d bytes/s, %d ops/s: want at most %d and %d", name, r.Bytes, r.Ops, int64(MaxBytes), int64(MaxOps))
	}
	return nil
}

func refuse(format string, args ...any) *errs.Error {
	return errs.New(errs.InvalidArgument, "", format, args...)
}

// Defaults gives the parameters of a class that nobody has set.
func Defaults(class layout.Class) Params {
	switch class {
	case layout.ClassInference:
		return Params{Weight: 4 * DefaultWeight, Target: 500 * time.Microsecond}
	case layout.ClassCheckpoint:
		return Params{Weight: DefaultWeight / 2}
	case layout.ClassBackground:
		return Params{Weight: DefaultWeight / 10}
	}
	return Params{Weight: DefaultWeight}
}
