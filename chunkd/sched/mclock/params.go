package mclock

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

func (r Rate) isZero() bool { return r == Rate{} }

// Params are what a flow is given. The zero value of each field stands for: no
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
	MaxBytes  = 1 << 40 // a second
	MaxOps    = 100e6   // a second
	MinTarget = 10 * time.Microsecond
	MaxTarget = 10 * time.Second

	defaultWeight = 100
	// bulkTarget is the latency target while no class in use has a smaller one.
	// Throughput does not need a larger one: see congested.
	bulkTarget = time.Millisecond
)

// Defaults gives the parameters of a class that nobody has set.
func Defaults(class layout.Class) Params {
	switch class {
	case layout.ClassInference:
		return Params{Weight: 4 * defaultWeight, Target: 500 * time.Microsecond}
	case layout.ClassCheckpoint:
		return Params{Weight: defaultWeight / 2}
	case layout.ClassBackground:
		return Params{Weight: defaultWeight / 10}
	}
	return Params{Weight: defaultWeight}
}

// Check refuses parameters that contradict each other or can't be meant.
// Errors: InvalidArgument, naming the figure.
func (p Params) Check() error {
	refuse := func(format string, args ...any) error {
		return errs.New(errs.InvalidArgument, "set class", format, args...)
	}
	for _, r := range []struct {
		name string
		rate Rate
	}{{"reservation", p.Reservation}, {"limit", p.Limit}} {
		switch {
		case r.rate.Bytes < 0 || r.rate.Ops < 0:
			return refuse("%s of %d bytes/s, %d ops/s: less than nothing", r.name, r.rate.Bytes, r.rate.Ops)
		case r.rate.Bytes > MaxBytes || r.rate.Ops > MaxOps:
			return refuse("%s of %d bytes/s, %d ops/s: at most %d and %d make sense", r.name, r.rate.Bytes, r.rate.Ops, int64(MaxBytes), int64(MaxOps))
		}
	}
	below := func(limit, reservation int64) bool { return limit > 0 && limit < reservation }
	switch {
	case below(p.Limit.Bytes, p.Reservation.Bytes) || below(p.Limit.Ops, p.Reservation.Ops):
		return refuse("limit of %d bytes/s, %d ops/s is below the reservation of %d bytes/s, %d ops/s",
			p.Limit.Bytes, p.Limit.Ops, p.Reservation.Bytes, p.Reservation.Ops)
	case p.Weight < 0 || p.Weight > MaxWeight:
		return refuse("weight %d, want 1 to %d", p.Weight, MaxWeight)
	case p.Target != 0 && (p.Target < MinTarget || p.Target > MaxTarget):
		return refuse("latency target %v, want %v to %v", p.Target, MinTarget, MaxTarget)
	}
	return nil
}

func (p Params) orDefaults() Params {
	if p.Weight == 0 {
		p.Weight = defaultWeight
	}
	return p
}

// Options bound a core; zero stands for the default of each.
type Options struct {
	MinWidth, MaxWidth int   // requests at the device at once; default 1 and 64
	Depth              int   // queued requests of all flows; default 16384
	FlowDepth          int   // queued requests of one flow, and those at its gate; default 2048
	GateBytes          int64 // admitted payload of one flow; default 32 MiB
	Flows              int   // flows known at once; default 4096
}

func (o Options) orDefaults() Options {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MinWidth, 1)
	def(&o.MaxWidth, 64)
	def(&o.Depth, 16384)
	def(&o.FlowDepth, 2048)
	def(&o.Flows, 4096)
	if o.GateBytes <= 0 {
		o.GateBytes = 32 << 20
	}
	o.MaxWidth = max(o.MaxWidth, o.MinWidth)
	return o
}
