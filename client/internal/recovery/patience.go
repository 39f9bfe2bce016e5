package recovery

import "time"

const (
	// LookEvery is how often a recoverer whose answers are not complete looks whether
	// it goes on without the rest.
	LookEvery = 100 * time.Millisecond
	// leastGrace is what late answers are waited for at least, once the others suffice.
	leastGrace = 500 * time.Millisecond
)

// Patience tells for how long a recoverer waits for answers that are late. A server
// that stands still would hold up every recovery for the whole time-out of a call,
// and with it those who wait for the volume, though up to m silent shards of a
// segment change nothing (design §6). What its answer would have saved is copied with
// the tail, so one that is only slow gets as long again as the others took, and at
// least 500 ms. The zero value is ready; one call of fences has one.
type Patience struct{ until time.Duration }

// Over tells whether to go on with the answers that in holds, since long after the
// servers were asked: what can't be decided yet is worth waiting for.
func (p *Patience) Over(since time.Duration, in Input) bool {
	if since < p.until {
		return false
	}
	if _, err := Decide(in); err != nil {
		p.until = 0
		return false
	}
	if p.until == 0 {
		p.until = since + max(leastGrace, since)
		return false
	}
	return true
}
