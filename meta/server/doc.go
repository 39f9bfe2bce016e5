// Package server is the metadata API (pb.Meta) and the leader's controllers.
//
// It is a thin shell: a call is converted (in.go), checked, and either proposed
// as a command or answered from a view of the state, and the answer is converted
// back (out.go). What is decided is decided elsewhere: by state's Apply, by
// placement, by reconcile's plans. It owns the leader's soft state (sessions'
// events, heartbeats, budgets), which begins anew with each term, and the calls
// to chunk servers. It knows nothing of raft.
//
// # Invariants
//
//	I1  Every call but Peek is answered by a leader that has caught up; what
//	    another server can answer is refused with not-leader and its address.
//	I2  Leases, epochs, seals, cuts and roots change by commands alone, and a
//	    reply tells of them as of its command or after Read.
//	I3  No soft state grants a right: an old leader that still renews sessions
//	    or answers heartbeats for a moment changes nothing, for expiry, marking
//	    down and taking over are commands.
//	I4  A repeat of a call under the same command id has one effect.
//	I5  A segment that a writer gets has all its shards; one of which a shard
//	    could not be made is dropped, and its shards are deleted later.
//
// # Times
//
// A session lives while it is renewed within its TTL, a chunk server counts as
// up while it is heard in this term, both by the leader's monotonic clock. A new
// leader gives everybody the full time from the start of its term: a server that
// it did not hear yet gets no new segment, and is not taken for gone either. Nothing is decided
// by a wall clock.
//
// # Goroutines
//
// gRPC runs each call on one of its own. While this server leads, Lead's
// goroutine owns the controllers: a loop that wakes once a second, and when the
// state changed, asks the planner for tasks and starts a goroutine for each;
// the planner bounds their number by what was handed out and not done. When the
// term ends its context ends the tasks, Lead waits for them, and callers that
// wait in KeepSession are sent on. Happened is called by the state machine's
// goroutine and only notes: it takes short locks and never waits. The planner
// is shared with the calls that hear of servers and sessions, under one mutex
// (control); nothing is called while it is held.
package server
