// Package reconcile decides what the metadata leader does next: it compares
// the state with what the leader hears and gives tasks.
//
// It owns the judgement: which servers are down, which sessions are over,
// which segments are to be finalized, given back or deleted, which volumes
// recovered or purged, and how long to wait before trying again. It owns no
// clock, no connection and no log: the shell tells it what it heard and when,
// asks for a plan, carries the tasks out, and says how each ended. Tasks that
// change the state end in a command; the next plan sees the result. So a new
// leader begins with a new Planner and just goes on.
//
// All times are the leader's own, monotonic, counted from any point. Whoever
// was not heard yet counts as heard when the Planner was made: a new leader
// gives everybody the full time.
//
// # Invariants
//
//	I1  A task that was handed out is not handed out again before Done.
//	I2  A task that failed waits longer each time, between Limits.Backoff and
//	    Limits.MaxBackoff.
//	I3  A plan has at most Limits.Plan tasks and reads at most Limits.Scan
//	    records of each listing; listings are gone through in turn, so that
//	    what can't be done now starves nothing behind it.
//	I4  Plans settle: when all servers stay up and tasks succeed, the plans
//	    become empty, and then nothing is left to finalize, to give back, to
//	    delete or to recover.
//	I5  The same calls give the same plans.
//
// A Planner has one caller at a time.
package reconcile
