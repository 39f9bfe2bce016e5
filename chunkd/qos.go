package chunkd

import (
	"sync/atomic"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/chunkd/server"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/proto/pb"
)

// classes keeps the devices' schedulers at what the metadata leader says of classes
// and of each device's part of cell-wide figures, and tells the leader what each
// device is asked for. All but name is the heartbeats' goroutine's alone.
type classes struct {
	plane   *server.Server
	found   func(layout.DeviceID) (calibrated, bool)
	version uint64                     // of known
	known   map[layout.Class]qos.Class // as the leader said; empty: as built in
	set     map[classOn]qos.Params     // what schedulers have, where it is not built in
	before  map[classOn]done           // at the last heartbeat
	peaks   map[layout.DeviceID]peak
	names   atomic.Pointer[map[layout.Class]string] // for whoever asks
	at      time.Time                               // of the last heartbeat
}

type classOn struct {
	device layout.DeviceID
	class  layout.Class
}

// done is what a class's work on a device adds up to.
type done struct{ served, waiting qos.Rate }

// peak is the most that a device did in a second, and when.
type peak struct {
	rate qos.Rate
	at   time.Time
}

func newClasses(plane *server.Server, found func(layout.DeviceID) (calibrated, bool)) *classes {
	c := &classes{plane: plane, found: found, known: map[layout.Class]qos.Class{}, set: map[classOn]qos.Params{}, before: map[classOn]done{}, peaks: map[layout.DeviceID]peak{}}
	c.renamed()
	return c
}

// report fills in what the leader is told.
func (c *classes) report(r *pb.HeartbeatRequest, now time.Time) {
	r.QosVersion = c.version
	seconds := now.Sub(c.at).Seconds()
	first := c.at.IsZero()
	c.at = now
	for _, d := range c.plane.Stats() {
		sums := map[layout.Class]done{}
		for _, f := range d.Flows {
			if f.Key == sched.OwnKey || f.Key == sched.TrialKey {
				continue // no class's demand: what follows from them, and measurements
			}
			s := sums[f.Class]
			s.served.Bytes += int64(f.ReadBytes + f.WroteBytes)
			s.served.Ops += int64(f.Reads + f.Writes)
			s.waiting.Bytes += f.QueuedBytes + f.HeldBytes
			s.waiting.Ops += int64(f.Waiting + f.AtGate)
			sums[f.Class] = s
		}
		var total qos.Rate
		for class, s := range sums {
			k := classOn{d.Device, class}
			was := c.before[k]
			c.before[k] = s
			if first || seconds <= 0 {
				continue
			}
			served := qos.Rate{Bytes: perSecond(s.served.Bytes-was.served.Bytes, seconds), Ops: perSecond(s.served.Ops-was.served.Ops, seconds)}
			total.Bytes, total.Ops = total.Bytes+served.Bytes, total.Ops+served.Ops
			r.Demands = append(r.Demands, &pb.ClassDemand{Device: uint64(d.Device), Class: uint32(class), Served: rateOut(served),
				Wanted: &pb.Rate{Bytes: served.Bytes + perSecond(s.waiting.Bytes, seconds), Ops: served.Ops + perSecond(s.waiting.Ops, seconds)}})
		}
		if capacity := c.capacity(d, total, now); capacity != nil {
			r.Capacities = append(r.Capacities, capacity)
		}
	}
}

func perSecond(n int64, seconds float64) int64 { return int64(float64(max(0, n)) / seconds) }

func rateOut(r qos.Rate) *pb.Rate { return &pb.Rate{Bytes: r.Bytes, Ops: r.Ops} }

// capacity is what a device was measured to do: on purpose, else by its scheduler
// while it was saturated, else the most that it did in a second. (More than what was
// measured in a second is no capacity: it may have come from the page cache.) nil: it
// did nothing yet.
func (c *classes) capacity(d server.DeviceStats, total qos.Rate, now time.Time) *pb.DeviceCapacity {
	p := c.peaks[d.Device]
	if total.Bytes > p.rate.Bytes || total.Ops > p.rate.Ops {
		p = peak{qos.Rate{Bytes: max(p.rate.Bytes, total.Bytes), Ops: max(p.rate.Ops, total.Ops)}, now}
		c.peaks[d.Device] = p
	}
	if f, ok := c.found(d.Device); ok {
		return &pb.DeviceCapacity{Device: uint64(d.Device), Rate: rateOut(f.rate), How: "calibrated", AgeS: uint64(now.Sub(f.at).Seconds())}
	}
	out := &pb.DeviceCapacity{Device: uint64(d.Device), Rate: rateOut(p.rate), How: "peak"}
	if !p.at.IsZero() {
		out.AgeS = uint64(now.Sub(p.at).Seconds())
	}
	if d.Lessons > 0 {
		rate := d.Cost.Capacity()
		out.Rate, out.How, out.AgeS = rateOut(qos.Rate{Bytes: max(p.rate.Bytes, rate.Bytes), Ops: max(p.rate.Ops, rate.Ops)}), "scheduler", uint64(d.LessonAge.Seconds())
	}
	if out.Rate.Bytes == 0 && out.Rate.Ops == 0 {
		return nil
	}
	return out
}

// learn takes in what the leader said and changes the schedulers that have another
// figure.
func (c *classes) learn(r *pb.HeartbeatReply) error {
	if r.QosVersion != c.version {
		c.known = map[layout.Class]qos.Class{}
		for _, p := range r.Classes {
			if p.Number > 0 && p.Number <= 255 {
				c.known[layout.Class(p.Number)] = classIn(p)
			}
		}
		c.version = r.QosVersion
		c.renamed()
	}
	want := map[classOn]qos.Params{}
	for _, d := range c.plane.Stats() {
		for number, class := range c.known {
			p := class.Params
			p.Reservation, p.Limit = qos.Rate{}, qos.Rate{} // a device's part comes as its share
			want[classOn{d.Device, number}] = p
		}
	}
	for _, s := range r.Shares {
		k := classOn{layout.DeviceID(s.Device), layout.Class(s.Class)}
		p, ok := want[k]
		if !ok {
			p = qos.Defaults(k.class)
		}
		p.Reservation, p.Limit = rateIn(s.Reservation), rateIn(s.Limit)
		want[k] = p
	}
	return c.apply(want)
}

// renamed tells on which classes there are, their names and objectives.
func (c *classes) renamed() {
	names, all := map[layout.Class]string{}, []layout.Class{}
	for _, b := range qos.Builtin() {
		all = append(all, b.Number)
	}
	for n := range 256 {
		class, known := c.known[layout.Class(n)]
		c.plane.SetSLO(layout.Class(n), class.SLO)
		if known {
			names[layout.Class(n)] = class.Name
			all = append(all, layout.Class(n))
		}
	}
	c.plane.SetClasses(all)
	c.names.Store(&names)
}

// name gives a class's name. Safe for concurrent use.
func (c *classes) name(n layout.Class) string {
	if names := c.names.Load(); names != nil && (*names)[n] != "" {
		return (*names)[n]
	}
	return n.String()
}

// apply sets what differs, and puts back what nobody says any more.
func (c *classes) apply(want map[classOn]qos.Params) error {
	for k := range c.set {
		if _, ok := want[k]; !ok {
			want[k] = qos.Defaults(k.class)
		}
	}
	for k, p := range want {
		if was, ok := c.set[k]; ok && was == p || !ok && p == qos.Defaults(k.class) {
			continue
		}
		if err := c.plane.SetDeviceClass(k.device, k.class, p); err != nil {
			return err
		}
		c.set[k] = p
	}
	return nil
}

func rateIn(r *pb.Rate) mclock.Rate { return mclock.Rate{Bytes: r.GetBytes(), Ops: r.GetOps()} }

func classIn(p *pb.QosClass) qos.Class {
	return qos.Class{Number: layout.Class(p.Number), Name: p.Name, SLO: qos.SLO{P99: time.Duration(p.SloNs), Bytes: p.SloBytes},
		Params: qos.Params{Reservation: rateIn(p.Reservation), Limit: rateIn(p.Limit), Weight: int(p.Weight), Target: time.Duration(p.TargetNs)}}
}
