package store

// Queue is the device's scheduler for what the store does by itself: it writes
// the log and the index and moves units, in pieces between which others get their
// turns. (A large unit's turns are its Append's.) Safe for concurrent use.
//
// The store asks for a turn while it is in shards, for which work that was given a
// turn may wait: no turn may be waited for without bound.
type Queue interface {
	// Piece is how many bytes one turn should write at most.
	Piece() int
	// Turn runs work, which writes n bytes to the device, on the caller's goroutine
	// when its turn has come, or when that has taken too long.
	Turn(n int, work func())
}

// atOnce is the Queue of a store that has none.
type atOnce struct{}

func (atOnce) Piece() int           { return maxRun }
func (atOnce) Turn(_ int, w func()) { w() }

// leastBatch is the longest batch of the log that is written in one turn however
// short pieces are: its latency is paid once for all that it holds.
const leastBatch = 32 << 10

// maxBatch is how long a batch of the log may be now; a longer record is one alone.
func maxBatch(q Queue) int64 { return int64(min(maxRun, max(leastBatch, q.Piece()))) }
