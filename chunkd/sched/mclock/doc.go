// Package mclock decides in which order a device serves the work of all tenants
// and classes, and how much of it at once.
//
// It is mClock (Gulati, Merchant, Varman: mClock: Handling Throughput Variability
// for Hypervisor IO Scheduling, OSDI 2010), one Core for each device. Work of one
// tenant in one class is a flow, whatever connections it came by. A flow has a
// reservation (served before anybody's share), a weight (its share of the rest)
// and a limit. The core is pure: time is an argument (the time since any fixed
// start), nothing waits in it but requests in lists, and equal calls give equal
// answers. It is not safe for concurrent use; its shell, package sched, holds one
// mutex around each call.
//
// Tags. Each flow carries the start tags of its next request:
//
//	R  when its reservation is due     next = R + bytes/rate (and + ops/rate)
//	L  when its limit allows it        next = L + bytes/rate (and + ops/rate)
//	P  its place by weight             next = P + cost/weight
//
// R and L exist for bytes and for operations apart; the later one counts, so that
// a reservation or limit of both holds for any mix of sizes. Next serves the
// smallest R that is due; if none is, the smallest P among flows whose L has
// come. What is served by weight leaves R alone (the paper's `reduce R tags`),
// what is served by reservation moves P on: a flow gets the larger of its
// reservation and its share, never both.
//
// Cost is device time, measured: see Cost. Rates are of bytes and operations at the
// device.
//
// Where this differs from the paper. P is virtual time (start-time fair queueing)
// and not wall time, so that a flow which comes back need not shift the tags of
// all others. A tag may lag behind the clock by a named bound only (catchUp,
// slack), else a flow that was hindered for a second would then hinder all others
// for one. At least a twentieth of the device goes by weight even when too much
// is reserved (floorShare): an admission control whose figure of the capacity was
// wrong must not starve anybody.
//
// Concurrency follows latency (Width): more while most requests are quicker than
// the smallest latency target among the classes in use, less when they are not,
// and never less than the device needs to be busy, which is told from how long a
// request takes alone. The longest piece of work (Quantum) follows the same
// target, so that on a slow device nobody stands behind a quarter MiB.
//
// Invariants (Check names the one that is broken):
//
//	I1  A request is idle, queued, at the gate, or running; Waiting and Running
//	    count them.
//	I2  A flow with queued requests is in exactly one of the heaps `limit` and
//	    `weight`, in `reserve` if and only if it has a reservation, and in
//	    `urgency` if and only if it is in `weight` and its class has a latency
//	    target; a flow without is in none.
//	I3  A flow in `limit` is not due before its key; heaps are ordered.
//	I4  The bytes admitted through a flow's gate are within its bound, or one
//	    request alone. Whoever waits at the gate could not be admitted.
//	I5  Requests of one flow are dispatched in the order of arrival.
package mclock
