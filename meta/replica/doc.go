// Package replica keeps a state machine the same on all metadata servers: it is
// the shell round hashicorp/raft. It owns a member's directory (log, snapshots,
// marker), its raft connections and its leadership; it knows nothing of what
// the commands mean (see Machine), of gRPC, or of when a cell forms.
//
// # Invariants
//
//	I1  After the first failed, hanging or corrupt log operation nothing is
//	    acknowledged any more and the process is told to end (guard).
//	I2  Every entry that is read was written under this index and term, bit
//	    for bit (envelope).
//	I3  A directory that was ever a member's says so (marker): written after
//	    the first raft state and before that state's acknowledgement. A member
//	    that lost its state takes part only after it was removed and added again.
//	I4  What Propose acknowledged is in the state of every later leader before
//	    its Lead begins; Read sees all that was acknowledged before the call.
//	I5  No command is skipped: one that can't be applied ends the process.
//
// # The log store
//
// The log is our own (logstore): files of records with a CRC, one sync for a batch. It
// took the place of raft-wal 0.4.0, which needed four remedies: it does not check what
// it reads, never closes its BoltDB file, gives entries that were truncated, and can't
// read a file again that lost its last entries; raft-boltdb's file is mapped into
// memory and was seen broken after power cuts. Everything goes through vfs, so that
// power cuts and faults can be tested, and all of the log is read at each start.
//
//	log/       the log's files, and meta: the list of them, term and vote
//	snapshots/ INDEX-TERM.snap, the newest two
//	member     whose directory this is
//	lock       held while a process has the directory
//
// # Goroutines
//
// raft has its own: the main loop, the state machine's, snapshots, and two for
// each follower; they end with Shutdown, and the connections that they read
// from are closed by the listener's owner (see mux). watch is the replica's one
// permanent goroutine: it follows leadership, and while this server leads it
// owns the goroutine that first waits for the barrier and then runs Lead and
// promote. Losing leadership cancels their context and waits for them before
// the next term can begin, so no two Leads of one process overlap. Read's rounds
// run on a goroutine that lives while somebody waits. Each question to raft has one that
// waits for the answer. Close stops watch and the rounds, waits for the answers (raft
// forgets what is under way when it stops), hands leadership on, and stops raft, in
// this order; after a failure it waits for no answer, and when the disk hangs it gives
// up after two seconds, because the process is about to end.
package replica
