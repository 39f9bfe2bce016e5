// Package state is the metadata service's state machine: commands in, state,
// results and events out.
//
// It owns every decision that must be the same on all metadata servers: who
// may write a volume and under which epoch, where segments lie and how they
// ended, what may be deleted. It does not own placement (the leader chooses and
// the command carries the choice), failure detection, time, or any I/O: Apply
// reads no clock and no randomness, and no map order reaches a result. Every
// state that is reached is reached bit for bit by all servers that apply the
// same log.
//
// # A segment's life
//
//	AllocateSegments   OpenSegments    SealSegments, CloseEpoch,  MarkFinalized
//	                                   AcquireLease (map)
//	 -> allocated ------> open ------------> sealed -------------> finalized
//	        |              |  \                 |                     |
//	        | DropSegments |   \ empty seal     | RecordRoot          | RecordRoot
//	        | AcquireLease |    \               v                     v
//	        +------+-------+-----+---------> dropped            retired, not needed
//	               ReleaseLease                 |                     |
//	                                            +---- MarkDeleted ----+--> gone
//
// # A shard's loss
//
// A shard is lost when its device is dead, or when MarkLost says so of one whose
// device lives: it was incomplete when it was finalized, or found corrupt or
// missing. Finalizing and deleting go on without lost shards. ReplaceShard gives
// a lost shard another place and generation, MarkSound ends its loss in place.
// A device that was given up because its server was gone for long is alive again
// when the server registers, with every shard that was not replaced meanwhile.
//
// # An epoch's life
//
// AcquireLease begins it. If lower epochs left open data segments, the epoch
// is not closed: the holder recovers and sends CloseEpoch, one entry that has
// the cut and every missing seal. Only then are roots accepted. It ends with
// ReleaseLease, or with the session, or when its holder abandons it; then the next AcquireLease decides what
// is left to recover. An epoch outlives its session on purpose: time alone
// decides nothing, a writer is out only once a higher epoch began.
//
// # Invariants
//
// Check verifies them and names the one that broke.
//
//	I1  No id is above the highest handed out, and none is handed out twice.
//	I2  Each device is listed by exactly one server, the one its record names.
//	I3  A volume's record is possible: name, size, geometry; a holder is a
//	    session that exists; purged implies removed and not held; undecided
//	    implies an epoch that is not closed. Epochs only grow.
//	I4  A root covers no more than seals, cuts and roots vouch for; root
//	    numbers grow by one, covers never falls.
//	I5  Cuts rise strictly in epoch and seq, and no sealed data segment of an
//	    epoch below a cut ends beyond it. (So an old cut only repeats the seals.)
//	I6  A segment's record is possible: its volume and devices exist, its shards
//	    are on distinct devices, its epoch is none of the future, m is the
//	    volume's and k is not above it.
//	I7  A seal describes a possible list (see Seal) and never changes; an empty
//	    segment is dropped. A retired data segment ends at or before its
//	    `retired`, which is at or before the root's covers.
//	I8  Once an epoch is closed, no lower epoch has an unsealed segment. Before
//	    that, only open data segments.
//	I9  What is kept for repeats is bounded, and in log order.
//	I11 Every class and reservation is possible, of a name and number of its own;
//	    a reservation's class exists.
//	I12 A snapshot lies in its branch's history; of one branch's snapshots a later
//	    one has no lower seq and no older root. A removed one exists as long as
//	    something stands on it, and what a branch began as, or a session reads,
//	    exists.
//	I13 A segment that the head or a snapshot names is needed, and no other is.
//	I10 Every index and figure agrees with the records.
//
// # Repeats
//
// A repeat of a command with the same id gives the first result, an unequal
// one is a conflict. What a command made carries the proof where it can:
// seals, roots, cuts, placements and the command id in each segment. For the
// rest the newest MaxRecent commands are remembered. Refusals are not: a
// refused command changed nothing, and its repeat is tried again.
//
// # Concurrency
//
// State has one writer. A View or Snapshot is a copy in O(1) of copy-on-write
// trees and is read from any goroutine. A View taken between any two commands
// makes the second copy the tree paths that it touches, some tens of KiB: take
// one per batch of commands rather than one per command.
//
// # Memory
//
// Segments are packed into strings (see pack) and indexes into runs (see
// index), both without pointers for the collector to follow. 4 Mi segments of
// 4+2 are budgeted 1.5 GiB; a test measures.
//
// The formats are told where they are written: commands at Encode, segment
// records at pack, snapshots at Snapshot.
package state
