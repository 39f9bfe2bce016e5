// Package sched decides when work on a device is dispatched.
//
// A Scheduler stands between the requests of all connections and one device.
// Work waits in it and not in the device or the page cache, because only here
// can it still be ordered. There are two: QoS, which serves tenants and classes by
// their reservations, weights and limits (package mclock decides, this is its
// shell), and FIFO, which serves in the order of arrival, to compare with.
//
// Invariants:
//
//	I1  At most as many pieces of work run at once as the scheduler's width says
//	    (QoS: and the few that mclock lets run beside it); what waits is bounded.
//	I2  Do runs fn exactly once, on the caller's goroutine, or returns an error
//	    and never runs it.
//	I3  Without contention Do allocates nothing and wakes nobody; with it, it
//	    allocates nothing once as many have waited before.
//
// Concurrency. Everything is under one mutex, which is never held while work runs
// or anybody waits. Turns that have come are handed out under it; the waiter's
// channel (capacity 1) carries that hand-off. A waiter that gives up takes itself
// out under the same mutex, and gives a turn back that it was handed in the
// meantime. No goroutine is started; QoS's timer, which lives only while work
// waits for a limit, hands out turns on the runtime's.
package sched
