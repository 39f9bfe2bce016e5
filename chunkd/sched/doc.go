// Package sched decides when work on a device is dispatched.
//
// A Scheduler stands between the requests of all connections and one device.
// Work waits in it and not in the device or the page cache, because only here
// can it still be ordered. Today there is one policy, FIFO; the policy per
// tenant and class takes its place behind the same interface, and its callers
// already say all that it needs to know (Tag), in pieces of at most Quantum.
//
// Invariants:
//
//	I1  At most Width pieces of work run at once, at most Depth wait.
//	I2  Do runs fn exactly once, on the caller's goroutine, or returns an error
//	    and never runs it.
//	I3  Without contention Do allocates nothing and wakes nobody.
//
// Concurrency. A slot that comes free is handed to the first waiter under the
// mutex, so that nobody overtakes it; the waiter's channel (capacity 1) carries
// that hand-off. A waiter that gives up removes itself under the same mutex, and
// passes a slot on that it was handed in the meantime. The package starts no
// goroutine.
package sched
