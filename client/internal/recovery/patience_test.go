package recovery

import (
	"testing"
	"time"

	"strake/internal/layout"
)

// A server that stands still costs a recovery no more than as long again as the
// others took, and never what it alone can tell.
func TestPatience(t *testing.T) {
	g := layout.Geometry{K: 2, M: 1}
	silent := func(n int) Input {
		s := Segment{ID: 1, Geometry: g, Shards: make([]Shard, 3)}
		for i := range s.Shards[n:] {
			s.Shards[n+i].State = Listed
		}
		return Input{Segments: []Segment{s}}
	}
	var p Patience
	at := func(ms int, in Input, want bool) {
		t.Helper()
		if got := p.Over(time.Duration(ms)*time.Millisecond, in); got != want {
			t.Errorf("after %d ms with %d silent: %v", ms, 3-countListed(in), got)
		}
	}
	for ms := 100; ms < 10_000; ms += 100 {
		at(ms, silent(2), false) // 1 of 3 answered: nothing can be decided
	}
	p = Patience{}
	at(100, silent(1), false)
	at(500, silent(1), false)
	at(600, silent(1), true)
	p = Patience{}
	at(1900, silent(2), false)
	at(2000, silent(1), false)
	at(3900, silent(1), false)
	at(4000, silent(1), true)
	p = Patience{} // the answer that came last makes it undecided again
	at(100, silent(1), false)
	at(600, silent(2), false)
	at(700, silent(1), false)
	at(1300, silent(1), false)
	at(1400, silent(1), true)
}

func countListed(in Input) (n int) {
	for _, s := range in.Segments[0].Shards {
		if s.State == Listed {
			n++
		}
	}
	return n
}
