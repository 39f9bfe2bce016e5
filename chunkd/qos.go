package chunkd

import (
	"slices"
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
// device is asked for. What a class has for itself is shared by the tenants that use it
// on a device; what a tenant's jobs reserved is its own. All but name is the heartbeats' goroutine's alone.
type classes struct {
	plane   *server.Server
	found   func(layout.DeviceID) (calibrated, bool)
	version uint64                     // of known
	known   map[layout.Class]qos.Class // as the leader said; empty: as built in
	set     map[workOn]qos.Params      // what schedulers have, where it is not built in
	before  map[workOn]done            // at the last heartbeat
	active  map[workOn]bool            // tenants that had work between the last two
	own     map[workOn]bool            // tenants with shares of their own
	peaks   map[layout.DeviceID]peak
	names   atomic.Pointer[map[layout.Class]string] // for whoever asks
	at      time.Time                               // of the last heartbeat
}

// workOn is the work of a class on a device, all of it or one tenant's.
type workOn struct {
	device layout.DeviceID
	class  layout.Class
	tenant layout.TenantID // 0: all of it
}

// done is what work adds up to.
type done struct{ served, waiting qos.Rate }

// peak is the most that a device did in a second, and when.
type peak struct {
	rate qos.Rate
	at   time.Time
}

func newClasses(plane *server.Server, found func(layout.DeviceID) (calibrated, bool)) *classes {
	c := &classes{plane: plane, found: found, known: map[layout.Class]qos.Class{}, set: map[workOn]qos.Params{}, before: map[workOn]done{}, peaks: map[layout.DeviceID]peak{}}
	c.renamed()
	return c
}

// report fills in what the leader is told.
func (c *classes) report(r *pb.HeartbeatRequest, now time.Time) {
	r.QosVersion = c.version
	seconds := now.Sub(c.at).Seconds()
	first := c.at.IsZero()
	c.at = now
	before := c.before
	c.before, c.active = map[workOn]done{}, map[workOn]bool{}
	for _, d := range c.plane.Stats() {
		c.sumUp(d)
		var total qos.Rate
		for k, s := range c.before {
			if k.device != d.Device || first || seconds <= 0 {
				continue
			}
			was := before[k]
			served := qos.Rate{Bytes: perSecond(s.served.Bytes-was.served.Bytes, seconds), Ops: perSecond(s.served.Ops-was.served.Ops, seconds)}
			wanted := served.Plus(qos.Rate{Bytes: perSecond(s.waiting.Bytes, seconds), Ops: perSecond(s.waiting.Ops, seconds)})
			if k.tenant == 0 {
				total = total.Plus(served)
			} else if c.active[k] = !wanted.IsZero(); !c.own[k] {
				continue
			}
			r.Demands = append(r.Demands, &pb.ClassDemand{Device: uint64(d.Device), Class: uint32(k.class), Tenant: uint32(k.tenant), Served: rateOut(served), Wanted: rateOut(wanted)})
		}
		if capacity := c.capacity(d, total, now); capacity != nil {
			r.Capacities = append(r.Capacities, capacity)
		}
	}
}

// sumUp adds a device's work up by class, and by tenant.
func (c *classes) sumUp(d server.DeviceStats) {
	for _, f := range d.Flows {
		if f.Key == sched.OwnKey || f.Key == sched.TrialKey {
			continue // no class's demand: what follows from them, and measurements
		}
		for _, tenant := range slices.Compact([]layout.TenantID{0, f.Tenant}) {
			k := workOn{d.Device, f.Class, tenant}
			s := c.before[k]
			s.served = s.served.Plus(qos.Rate{Bytes: int64(f.ReadBytes + f.WroteBytes), Ops: int64(f.Reads + f.Writes)})
			s.waiting = s.waiting.Plus(qos.Rate{Bytes: f.QueuedBytes + f.HeldBytes, Ops: int64(f.Waiting + f.AtGate)})
			c.before[k] = s
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
	want, own := map[workOn]qos.Params{}, map[workOn]qos.Rate{}
	for _, d := range c.plane.Stats() {
		for number, class := range c.known {
			p := class.Params
			p.Reservation, p.Limit = qos.Rate{}, qos.Rate{} // a device's part comes as its share
			want[workOn{d.Device, number, 0}] = p
		}
	}
	for _, s := range r.Shares {
		k := workOn{layout.DeviceID(s.Device), layout.Class(s.Class), layout.TenantID(s.Tenant)}
		if k.tenant != 0 {
			own[k] = rateIn(s.Reservation)
			continue
		}
		p := paramsOf(want, k)
		p.Reservation, p.Limit = rateIn(s.Reservation), rateIn(s.Limit)
		want[k] = limitAbove(p)
	}
	c.share(want, own)
	return c.apply(want)
}

// share gives tenants their parts: each with work in a class an even one of what the
// class has on the device, besides what its jobs reserved. A tenant that comes has all
// of the class's until the next heartbeat.
func (c *classes) share(want map[workOn]qos.Params, own map[workOn]qos.Rate) {
	users := map[workOn]int64{}
	for k, yes := range c.active {
		if yes {
			users[workOn{k.device, k.class, 0}]++
		}
	}
	c.own = map[workOn]bool{}
	for k := range own {
		c.own[k], c.active[k] = true, true
	}
	for k, yes := range c.active {
		all := workOn{k.device, k.class, 0}
		p := paramsOf(want, all)
		if !yes || !c.own[k] && (users[all] < 2 || p.Reservation.IsZero()) {
			continue
		}
		n := max(1, users[all])
		p.Reservation = qos.Rate{Bytes: p.Reservation.Bytes / n, Ops: p.Reservation.Ops / n}.Plus(own[k])
		want[k] = limitAbove(p)
	}
}

// paramsOf is what work is to have, or its class has by itself.
func paramsOf(want map[workOn]qos.Params, k workOn) qos.Params {
	if p, ok := want[k]; ok {
		return p
	}
	return qos.Defaults(k.class)
}

// limitAbove raises a limit to what is reserved: what was admitted is kept.
func limitAbove(p qos.Params) qos.Params {
	raise := func(limit *int64, reserved int64) {
		if *limit > 0 {
			*limit = max(*limit, reserved)
		}
	}
	raise(&p.Limit.Bytes, p.Reservation.Bytes)
	raise(&p.Limit.Ops, p.Reservation.Ops)
	return p
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
func (c *classes) apply(want map[workOn]qos.Params) error {
	for k := range c.set {
		if _, ok := want[k]; ok {
			continue
		}
		if k.tenant == 0 {
			want[k] = qos.Defaults(k.class)
			continue
		}
		c.plane.ResetFlow(k.device, mclock.Key{Tenant: k.tenant, Class: k.class})
		delete(c.set, k)
	}
	for k, p := range want {
		if was, ok := c.set[k]; ok && was == p || !ok && k.tenant == 0 && p == qos.Defaults(k.class) {
			continue
		}
		if err := c.give(k, p); err != nil {
			return err
		}
		c.set[k] = p
	}
	return nil
}

func (c *classes) give(k workOn, p qos.Params) error {
	if k.tenant == 0 {
		return c.plane.SetDeviceClass(k.device, k.class, p)
	}
	return c.plane.SetFlow(k.device, mclock.Key{Tenant: k.tenant, Class: k.class}, p)
}

func rateIn(r *pb.Rate) mclock.Rate { return mclock.Rate{Bytes: r.GetBytes(), Ops: r.GetOps()} }

func classIn(p *pb.QosClass) qos.Class {
	return qos.Class{Number: layout.Class(p.Number), Name: p.Name, SLO: qos.SLO{P99: time.Duration(p.SloNs), Bytes: p.SloBytes},
		Params: qos.Params{Reservation: rateIn(p.Reservation), Limit: rateIn(p.Limit), Weight: int(p.Weight), Target: time.Duration(p.TargetNs)}}
}
