// Package store is the store of one device of a chunk server: shards, the units
// appended to them, and what was promised of both, in one directory that it
// reaches through package vfs alone.
//
// It does not know volumes' owners, tokens, classes or the network; it does not
// verify what it reads for a client (the client does), nor repair.
//
// # Where a unit is
//
// A large unit is written to the shard's data file at once, past the page cache
// where that can be; Sync makes the file durable, then writes the records, in one
// synced index batch. A small unit waits in memory; Sync writes all that wait, of
// whatever shard, to the append log in one write that is durable when it returns.
// That record is the truth, and needs no index write. In the background, when a
// log file is full, its units are moved, out of memory: data files written,
// fdatasync, one synced index batch, and only then is the log file free for use
// again, and the memory.
//
//	            Append         Sync                          move
//	large  ---> data file ---> fdatasync, record in index
//	small  ---> memory    ---> log, fdatasync           ---> data file, fdatasync, record in index
//
// # Invariants
//
// Check verifies them and names the one that is broken.
//
//	I1  A stripe record is in the index only if its unit is durable in the data
//	    file. So a stripe without a record was never durable (or is in the log,
//	    I5), and a unit that does not fit its record is rot: "can't tell", never
//	    "never had it".
//	I2  The table in memory says what the index says of each shard. Only a fence
//	    may be ahead in memory, which refuses more, never less.
//	I3  A fence is durable, and all that the shard had is durable and in the index,
//	    before the shard is listed; after that nothing enters it.
//	I4  The stripes of a shard do not overlap, and offsets ascend with seqs.
//	I5  What the log holds for a shard and the index does not is known in memory;
//	    a log file is used again only when nothing in it is needed, and the log
//	    never exceeds its bound. A durable record that is missing or damaged
//	    leaves a doubt: of its stripe, or of every shard that took appends.
//	I6  A deleted shard has a tombstone and nothing else, and a generation that
//	    was deleted is never created again.
//	I7  The account is the sum over the shards: full length while a shard can
//	    grow, what it stores once it is finalized.
//	I8  A finalized shard's file ends where its seal says. What no stripe covers
//	    reads as zeros.
//	I9  The incarnation only rises: it is in the index and in both slots of the
//	    superblock before Open returns. An index behind the superblock is refused.
//	I10 After the first error of an fsync, of a log write or of the index nothing
//	    is answered but Unavailable.
//
// # Concurrency
//
// Locks, in the order in which they are taken: moveMu, shard.syncMu (in the order
// of keys), shard.mu, then table.mu, appendLog.mu or handles.mu, which are leaves.
// Appends and reads of one shard run beside each other; shard.mu is held to look
// and to enter, not across I/O but where admit.go says so. A fence, finalize or
// delete is alone in its shard (shard.go tells how). The one goroutine is the
// mover; Close waits for it.
//
// Turns. What the store writes by itself (the log, the index, moves and the syncs
// of both) waits for the device's scheduler (Queue), in pieces, and with shards
// entered or closed to others. An append that was given a turn may wait for such a
// shard, so the Queue's patience has a bound: else the two could wait for each other.
//
// # What is assumed of the disk
//
// Package vfs says it: un-synced writes may be lost, kept or torn by sectors, in
// any order; synced ones survive.
//
// # Known limits
//
// If the very last batch of the log rots between its sync and the next power
// cut, it looks like a torn one, and its stripes are taken for never durable,
// unless a later index batch recorded that it was durable.
package store
