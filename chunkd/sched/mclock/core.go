package mclock

import (
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

// MaxQuantum and MinQuantum bound Quantum.
const (
	MaxQuantum = 256 << 10
	MinQuantum = 16 << 10
)

const (
	// floorShare: of so many parts of the device one goes by weight, whatever is
	// reserved.
	floorShare = 20
	// extraWidth is how many requests of classes with a latency target may run
	// beside the width, see urgent.
	extraWidth = 4
	// rebaseAt keeps P tags from overflowing.
	rebaseAt = 1 << 60
)

// Core schedules one device. See the package's text.
type Core struct {
	opts    Options
	classes [256]class
	own     map[Key]Params // of flows that differ from their class

	flows   map[Key]*flow
	order   []*flow // all of them, in the order of arrival
	heaps   [heaps]heap
	virtual int64         // P of what was served last by weight
	behind  time.Duration // how far R tags lie behind wall time, see lag
	owed    time.Duration // cost served by reservation while others waited, see floorShare

	running, waiting int
	extra            int           // of running, beside the width
	turned           time.Duration // when one of the others came or went
	width            width
	costs            costs
	latencies        [2][sizes]latency
	target           time.Duration // smallest of the classes in use
	quick            bool          // one of them has a target
	quanta           [2]int        // of reads and writes

	stat coreStat
	// Refusals are made once, because under overload there are many.
	late, full, tooMany *errs.Error
}

type class struct {
	params   Params
	used     bool          // ever
	lastUsed time.Duration // while used
}

// New makes a core; zero options stand for their defaults.
func New(opts Options) *Core {
	c := &Core{opts: opts.orDefaults(), own: map[Key]Params{}, flows: map[Key]*flow{}, target: bulkTarget, quanta: [2]int{MaxQuantum, MaxQuantum}}
	for i := range c.classes {
		c.classes[i].params = Defaults(layout.Class(i))
	}
	for i := range c.heaps {
		c.heaps[i].which = i
	}
	c.width = width{least: c.opts.MinWidth, most: c.opts.MaxWidth, probed: -probeEvery}
	c.width.now = min(max(firstWidth, c.opts.MinWidth), c.opts.MaxWidth)
	c.costs = newCosts(firstCost)
	c.late = errs.New(errs.Deadline, "", "the device can't serve this before its deadline")
	c.full = errs.New(errs.Overloaded, "", "too many requests of this tenant and class wait for the device").WithHint("back off and try again")
	c.tooMany = errs.New(errs.Overloaded, "", "more tenants and classes use the device than it keeps apart").WithHint("back off and try again")
	return c
}

// Enqueue takes a request in; Next will give it when its turn comes. Refusals:
// Deadline, Overloaded (the flow's or the device's queue is full),
// InvalidArgument.
func (c *Core) Enqueue(now time.Duration, r *Request) error {
	f, err := c.accept(now, r)
	if err != nil {
		return err
	}
	if f.queue.n >= c.opts.FlowDepth || c.waiting >= c.opts.Depth {
		f.stat.refused++
		return c.full
	}
	if lat := c.latency(r); r.Deadline != 0 && f.earliest(now)+lat.usual > r.Deadline {
		c.refuseLate(now, r, f, lat)
		return c.late
	}
	r.state, r.flow, r.arrived, r.Late = queued, f, now, false
	r.cost = c.costs.of(r.Write, r.Bytes)
	if f.queue.n == 0 {
		f.activate(now, c.behind, c.virtual)
	}
	f.queue.push(r)
	f.queuedBytes, f.queuedCost = f.queuedBytes+int64(r.Bytes), f.queuedCost+r.cost
	c.waiting++
	if f.queue.n == 1 {
		c.place(now, f)
	}
	return nil
}

// accept checks a request and finds its flow.
func (c *Core) accept(now time.Duration, r *Request) (*flow, error) {
	if r.state != idle {
		return nil, errs.New(errs.Internal, "", "a request was handed in twice")
	}
	if r.Bytes < 0 || r.Bytes > MaxBytesOfRequest {
		return nil, errs.New(errs.InvalidArgument, "", "a request of %d bytes, want 0 to %d", r.Bytes, MaxBytesOfRequest)
	}
	f := c.flows[Key{r.Tenant, r.Class}]
	if f == nil {
		if f = c.newFlow(now, Key{r.Tenant, r.Class}); f == nil {
			return nil, c.tooMany
		}
	}
	if !r.Service {
		c.use(now, r.Class)
	}
	return f, nil
}

// use notes that a class is in use.
func (c *Core) use(now time.Duration, class layout.Class) {
	cl := &c.classes[class]
	fresh := !cl.used || now-cl.lastUsed > inUse
	cl.used, cl.lastUsed = true, now
	if fresh {
		c.retarget(now)
	}
}

// refuseLate counts a refusal. Where what the device takes is too long by itself, that
// estimate ages with each, so that one bad moment can't refuse work for ever; a queue
// or a limit passes by itself.
func (c *Core) refuseLate(now time.Duration, r *Request, f *flow, lat *latency) {
	f.stat.late++
	if now+lat.usual > r.Deadline {
		lat.usual -= lat.usual / 8
	}
}

// dispatch charges a request and counts it as running.
func (c *Core) dispatch(now time.Duration, f *flow, r *Request, reserved bool) {
	r.cost = c.costs.of(r.Write, r.Bytes)
	if reserved {
		f.stat.reserved++
		if f, _ := c.heaps[byWeight].top(); f != nil {
			c.owed += r.cost
		}
	} else {
		served := f.p
		if least, p := c.heaps[byWeight].top(); least != nil {
			served = min(served, p) // an urgent flow runs ahead of its turn: time does not
		}
		c.virtual = max(c.virtual, served)
		c.owed = max(0, c.owed-(floorShare-1)*r.cost)
	}
	f.charge(now, r, reserved, c.costs.charged(r))
	if f.p > rebaseAt {
		c.rebase()
	}
	r.state, r.dispatched = running, now
	f.running++
	c.running++
	c.width.began(r, c.running)
	f.stat.queue.add(r.Queued())
}

// place puts a flow into the heaps that it belongs to.
func (c *Core) place(now time.Duration, f *flow) {
	f.throttled(now, false)
	if f.queue.n == 0 {
		for i := range c.heaps {
			c.heaps[i].drop(f)
		}
		return
	}
	if f.params.Reservation.IsZero() {
		c.heaps[byReserve].drop(f)
	} else {
		c.heaps[byReserve].set(f, int64(f.reserve.at()))
	}
	if at := f.limit.at(); !f.params.Limit.IsZero() && at > now {
		c.heaps[byWeight].drop(f)
		c.heaps[byUrgency].drop(f)
		c.heaps[byLimit].set(f, int64(at))
		f.throttled(now, true)
		return
	}
	c.heaps[byLimit].drop(f)
	if f.pos[byWeight] == 0 {
		f.p = max(f.p, c.virtual) // time spent throttled gives no credit either
	}
	c.heaps[byWeight].set(f, f.p)
	if c.classes[f.key.Class].params.Target > 0 {
		c.heaps[byUrgency].set(f, f.p)
	} else {
		c.heaps[byUrgency].drop(f)
	}
}

// Done takes a request back that ran for took.
func (c *Core) Done(now time.Duration, r *Request, took time.Duration) {
	f := c.ended(now, r)
	f.stat.done(r, took)
	lat := c.latency(r)
	smooth(&lat.usual, took)
	c.width.done(r, took, lat.allowed(c.target, c.quick), lat)
	if c.quick && lat.alone > c.target && r.Bytes == c.quanta[kindOf(r.Write)] && r.Bytes > MinQuantum {
		c.retarget(now)
	}
	if c.costs.done(now, c.width.now, r.Write, r.Bytes) {
		c.stat.lessons, c.stat.taught = c.stat.lessons+1, now
		c.retarget(now)
	}
}

// Return takes a request back that was dispatched and did not run. What it was
// charged is lost.
func (c *Core) Return(now time.Duration, r *Request) { c.ended(now, r) }

func (c *Core) ended(now time.Duration, r *Request) *flow {
	f := r.flow
	r.state, r.flow = idle, nil
	f.running--
	c.running--
	if r.extra {
		c.extra--
	} else {
		c.turned = now
	}
	c.left(now, f)
	return f
}

// Cancel takes a request out that is queued or at the gate; false: it is neither.
func (c *Core) Cancel(now time.Duration, r *Request) bool {
	f := r.flow
	switch r.state {
	case queued:
		f.queue.remove(r)
		f.queuedBytes, f.queuedCost = f.queuedBytes-int64(r.Bytes), f.queuedCost-r.cost
		c.waiting--
		c.place(now, f)
	case gated:
		f.gate.remove(r)
	default:
		return false
	}
	r.state, r.flow = idle, nil
	c.left(now, f)
	return true
}

// left notes when a flow has become idle.
func (c *Core) left(now time.Duration, f *flow) {
	if f.idle() {
		f.idleSince = now
	}
}

// watch tells the measurements, when all that may run does, whether the device is
// saturated.
func (c *Core) watch(now time.Duration, saturated bool) {
	c.costs.saturated(now, saturated)
	if saturated {
		c.width.saturated(now)
	}
}

// latency is what is known of requests like this one.
func (c *Core) latency(r *Request) *latency {
	return &c.latencies[kindOf(r.Write)][sizeOf(r.Bytes)]
}

// rebase shifts all P tags down together.
func (c *Core) rebase() {
	for _, f := range c.order {
		f.p = max(0, f.p-c.virtual)
	}
	for _, which := range []int{byWeight, byUrgency} { // the order stays: none is below virtual
		for i := range c.heaps[which].items {
			c.heaps[which].items[i].key -= c.virtual
		}
	}
	c.virtual = 0
}
