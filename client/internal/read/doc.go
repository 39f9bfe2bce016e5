// Package read plans reads and decides their way through failures. It is pure:
// no I/O, no goroutine, no clock. The shell sends what it is told to, checks
// replies with Request.Check, and reports what happened.
//
// Story of a read. Start cuts the pieces of a read into runs (parts of one unit
// of one stripe), groups them by shard, joins neighbours, and gives one Send
// per request. Each reply is checked block by block against the checksums that
// came with it. When all requests are good the read is Done, and nothing was
// copied or allocated but what the caller's buffer holds.
//
// Degraded. The runs of a request that failed, and the blocks of one that came
// back corrupt, are put into groups of runs with the same participants. A group
// asks as many other participants as its stripes have data units for the same
// rows, with their stripe headers, which give the checksums of all units; it
// asks another participant for each that fails. Data units outside the mask are
// zeros and are not asked for. When enough units are right, the shell decodes
// straight into the caller's buffer and checks the result by the lost unit's
// own checksums.
//
// Late. A request said to be late gets its groups while it stays under way. The
// first to be complete wins and the other is canceled; the request is canceled
// before anything is decoded into its buffer.
//
// Moved. The first shard of a segment that answers 'not here' or 'stale
// generation' makes one Refresh of that segment's placement, after which the
// request is sent once more; the second such answer counts as a failure.
//
// Invariants:
//
//	I1  Done is given only when every byte was right by a checksum of its own unit.
//	I2  Exactly one of Done and Fail is given, after a Cancel for every request
//	    still under way; no action follows.
//	I3  A group never waits for more units than it needs, but for late ones.
//	I4  Equal pieces and events give equal actions.
package read
