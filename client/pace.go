package client

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strake/internal/layout"
)

const (
	// minLate and maxLate bound how long a shard may take before others are asked
	// for the same bytes beside it.
	minLate = 5 * time.Millisecond
	maxLate = 250 * time.Millisecond
	// newLate is that time for a server of which little is known.
	newLate = 100 * time.Millisecond
	// lateTimes is how many times a server's recent p99 that is.
	lateTimes = 3
	// largeRead is from how many bytes on a read counts as a large one.
	largeRead = 64 << 10
	// hedgePart of all requests may be asked for twice, and maxHedges at once
	// after a quiet time.
	hedgePart = 20
	maxHedges = 8
)

// pace knows how fast each chunk server answers reads, and which one is silent.
// A request that takes a few times the recent p99 of its kind is late. If the
// server answered others since, the read may ask other shards within a budget,
// so that hedges do not feed an overload. If it answered nothing since, no
// budget is asked: the server is suspect then, later reads go around it, and a
// probe finds out when it answers again. Safe for concurrent use.
type pace struct {
	suspects atomic.Int32 // so that a read need not lock when there is none

	mu      sync.Mutex
	servers map[layout.ServerID]*serverPace // guarded by mu
	budget  int                             // guarded by mu: hedges times hedgePart
}

// serverPace is guarded by pace.mu.
type serverPace struct {
	small, large quantile
	answered     time.Time // when the latest answer came
	suspect      bool
}

func newPace() *pace { return &pace{servers: map[layout.ServerID]*serverPace{}} }

// of finds or makes a server's record. mu is held.
func (p *pace) of(id layout.ServerID) *serverPace {
	s := p.servers[id]
	if s == nil {
		s = &serverPace{}
		p.servers[id] = s
	}
	return s
}

func (s *serverPace) kind(bytes int) *quantile {
	if bytes >= largeRead {
		return &s.large
	}
	return &s.small
}

// sent counts a request and tells how long its answer may take.
func (p *pace) sent(id layout.ServerID, bytes int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = min(p.budget+1, maxHedges*hedgePart)
	p99 := p.of(id).kind(bytes).get()
	if p99 == 0 {
		return newLate
	}
	return min(max(lateTimes*p99, minLate), maxLate)
}

// got notes an answer.
func (p *pace) got(id layout.ServerID, bytes int, took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	s.kind(bytes).add(took)
	s.answered = now
	p.clear(s)
}

func (p *pace) clear(s *serverPace) {
	if s.suspect {
		s.suspect = false
		p.suspects.Add(-1)
	}
}

// trust takes a server for one that answers: it refuses connections, which costs
// no read any time, or it was probed.
func (p *pace) trust(id layout.ServerID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	s.answered = now
	p.clear(s)
}

// hedge asks whether other shards may be asked beside a late one. fresh tells
// that the server became suspect by this: it is to be probed.
func (p *pace) hedge(id layout.ServerID, sentAt time.Time) (granted, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	if s.answered.Before(sentAt) {
		fresh = !s.suspect
		if fresh {
			s.suspect = true
			p.suspects.Add(1)
		}
		return true, fresh
	}
	if p.budget < hedgePart {
		return false, false
	}
	p.budget -= hedgePart
	return true, false
}

func (p *pace) suspect(id layout.ServerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[id]
	return s != nil && s.suspect
}

// down gives the shards of a segment that a read had better go around, none when
// there are more than the parity makes up for.
func (p *pace) down(s *segment) (down layout.Mask) {
	if p.suspects.Load() == 0 {
		return 0
	}
	for i, at := range s.shards {
		if p.suspect(at.server) {
			down = down.With(layout.ShardIndex(i))
		}
	}
	if down.Count() > int(s.geometry.M) {
		return 0
	}
	return down
}

// inOrder gives the shards of a set, those on suspect servers last.
func (p *pace) inOrder(s *segment, set layout.Mask) (list []layout.ShardIndex) {
	down := p.down(s)
	for _, m := range []layout.Mask{set &^ down, set & down} {
		for ; m != 0; m &= m - 1 {
			i, _ := m.Nth(0)
			list = append(list, i)
		}
	}
	return slices.Clip(list)
}
