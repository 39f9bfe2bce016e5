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
	last
)

var names = [...]string{"none", "ack before fsync", "fence not persisted", "fence not on recovery reads", "never had it for a CRC error",
	"stale generation accepted", "incarnation ignored", "seq gap not cut", "placement moved before the new shard is durable",
	"delete before proof", "padding not zeroed", "lease by wall clock", "flush error dropped", "what was decided is not looked for"}

// String names it.
func (b Bug) String() string { return names[b] }

// All lists the bugs.
func All() (list []Bug) {
	for b := None + 1; b < last; b++ {
		list = append(list, b)
	}
	return list
}
