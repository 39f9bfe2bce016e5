// Package janitor keeps a chunk server's shards whole: it makes lost shards again
// from the others, puts rotten bytes right, reads everything now and then, and
// removes what nothing needs any more.
//
// It decides nothing that others must know of. What is to be made, where, and
// from which sources, the metadata leader says; when a shard counts, the leader
// records; what may be removed, the leader answers. The janitor owns the work:
// lists, reads, decoding, proofs and pace.
//
// # A rebuild
//
//	create at the new generation      nobody reads it: no placement names it
//	list a whole source's headers     its digest must be the seal's
//	read d units of each stripe       many stripes a request, from any d of its
//	                                  participants, each held against the header
//	decode, hold against the header   wrong bytes never reach the disk
//	fill: data, fdatasync, records
//	mend: the own list's digest must be the seal's; finalized
//	-> the answer; the leader then compares and sets the placement
//
// A repair is the same in the shard's own place: units that read right are left
// alone. It needs no new generation, as a sealed stripe has one content.
//
// # Invariants
//
//	I1  No byte is written that was not held against the checksum in a header of
//	    a list whose digest is the seal's.
//	I2  A shard is answered for only after it is durable and finalized.
//	I3  A rebuild that fails leaves its shard where it is: a repeat goes on with
//	    it. Only CheckShards' answer removes one.
//	I4  One task at a time works on a shard of this server, removal included.
//	I5  A scrub cycle reads every finalized shard once, unless a device was too busy
//	    for minutes; what it finds it reports, and repairs nothing by itself. That a
//	    device is busy says nothing of a shard.
//	I6  A sweep looks for what the state places on a device only after the state
//	    named it: what it reports missing then is lost, whatever ran meanwhile.
//
// # Pace
//
// All work at devices passes their schedulers under the background class, in
// quanta. On top, rebuild and scrub have a ceiling each, in bytes a second of
// this server (Config); a rebuild of a segment that can lose no more shard has
// none. The floor of a scrub is what a cycle needs to end in its time.
//
// # Concurrency
//
// A call of RebuildShards runs on its caller's goroutines, as many at once as the
// leader asks for. Each device has a goroutine that scrubs, and the janitor one
// that sweeps; Close ends them and waits, as it waits for calls under way. A
// connection to a source belongs to one request at a time; idle ones wait in the
// pool, a few for each address.
//
// Memory: a task holds its shard's headers (at most some 34 MiB, for a shard of
// 1 GiB in 4 KiB units; 2 MiB for one of the default length) and one batch,
// 12 MiB as a rule, which it hands on to the next task.
package janitor
