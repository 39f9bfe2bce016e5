package planted

// Bug is a planted bug.
type Bug uint8

// The bugs, by what they do.
const (
	None                    Bug = iota
	AckBeforeFsync              // a chunk server's Sync answers without a sync of the disk
	FenceNotPersisted           // a fence stands in memory alone
	FenceNotOnRecoveryReads     // a recoverer's reads are not held against the fence
	NeverForCorrupt             // a fenced shard leaves out what it can't read, as if it never had it
	StaleGenerationAccepted     // a shard answers for a generation that it is not
	IncarnationIgnored          // a Sync is taken after a restart lost what it is to cover
	SeqGapNotCut                // recovery goes on behind a missing seq
	MovedBeforeDurable          // a shard's new place is recorded before the shard is made
	DeletedBeforeProof          // a leftover goes before its segment is whole without it
	PaddingNotZeroed            // what pads a stripe's last unit is not zeros
	LeaseByWallClock            // a shard that was quiet for long is listed unfenced: the lease must be over
	FlushErrorDropped           // a writer takes a failed sync for a good one
	LastCutTrusted              // recovery does not look for what a closed epoch kept
	RootBeforeFlush             // a map root is recorded, and retires segments, before what it covers is flushed
	BarrierUnflushed            // a snapshot barrier is answered with what is acknowledged
	FreedWhileReachable         // a segment that begins before a snapshot and ends after it is not needed by it
	PinForgotten                // a removed snapshot goes while somebody reads it
	RelocationBlind             // a relocation does not look for what was written meanwhile
	last
)

var names = [...]string{"none", "ack before fsync", "fence not persisted", "fence not on recovery reads", "never had it for a CRC error",
	"stale generation accepted", "incarnation ignored", "seq gap not cut", "placement moved before the new shard is durable",
	"delete before proof", "padding not zeroed", "lease by wall clock", "flush error dropped", "what was decided is not looked for",
	"map root before flush", "barrier answered before flush", "freed while reachable", "an open snapshot freed", "relocation over a newer write"}

// String names it.
func (b Bug) String() string { return names[b] }

// All lists the bugs.
func All() (list []Bug) {
	for b := None + 1; b < last; b++ {
		list = append(list, b)
	}
	return list
}
