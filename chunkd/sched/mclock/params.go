package mclock

import (
	"time"

	"strake/internal/layout"
	"strake/internal/qos"
)

// Rate and Params are those of the class, or a device's part of them.
type (
	Rate   = qos.Rate
	Params = qos.Params
)

// bulkTarget is the latency target while no class in use has a smaller one.
// Throughput does not need a larger one: see congested.
const bulkTarget = time.Millisecond

// Defaults gives the parameters of a class that nobody has set.
func Defaults(class layout.Class) Params { return qos.Defaults(class) }

func orDefaults(p Params) Params {
	if p.Weight == 0 {
		p.Weight = qos.DefaultWeight
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
