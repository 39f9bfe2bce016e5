package recovery

import (
	"strake/internal/layout"
	"strake/proto/stripe"
)

// Plan is what a recoverer does.
type Plan struct {
	Cut     layout.Seq    // the log's last seq
	Flushed layout.Seq    // highest flushed seq in any header
	Seals   []stripe.Seal // one for each input segment, in its order; for CloseEpoch
	Tail    []Tail        // ascending by seq; append again and sync before CloseEpoch
	// Blocked says, with an error, who must come back.
	Blocked []Blocker
}

// Tail is a standing stripe, not known to be flushed, that some participant
// doesn't have for sure: decode it from Have and append it again.
type Tail struct {
	Header  *stripe.Header // of one of those that have it
	Segment layout.SegmentID
	Have    layout.Mask // shards that have it for sure
}

// Blocker is a shard that keeps a recovery from deciding.
type Blocker struct {
	Segment layout.SegmentID
	Shard   layout.ShardIndex
	Server  layout.ServerID
	Seq     layout.Seq // 0: the shard as a whole
	Reason  string
}

// Decide tells what stands (design §6.3 to 6.6). Errors: Unavailable when fewer
// than k shards of a segment answered, Undecided when the first seq that does
// not stand may yet stand, Corrupt when two headers of a copy contradict each
// other. With an error the plan holds only Blocked.
func Decide(in Input) (Plan, error) { return Plan{}, nil }
