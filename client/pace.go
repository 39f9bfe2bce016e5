package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	// minLate and maxLate bound how long a shard may take before others are asked
	// for the same bytes beside it.
	minLate = 5 * time.Millisecond
	maxLate = 250 * time.Millisecond
	// newLate is that time for a server of which little is known.
	newLate = 100 * time.Millisecond
	// A server that answers nothing for so long, or for lateTimes its recent p99, is
	// silent; one of which little is known, after newSilent.
	minSilent = 100 * time.Millisecond
	newSilent = 250 * time.Millisecond
	maxSilent = time.Second
	// lateTimes is how many times a server's recent p99 that is, and slowTimes how
	// many times the others'.
	lateTimes = 3
	slowTimes = 6
	// largeRead and hugeRead are from how many bytes on a request is of another kind:
	// its time is compared with that of its own kind.
	largeRead = 64 << 10
	hugeRead  = 512 << 10
	kinds     = 3
	// For each hedgePart requests one more may be sent to be quicker, and maxExtra
	// at once after a quiet time. A read of one unit of k+m takes k of them.
	hedgePart = 20
	maxExtra  = 32
	// busyQueue is how long requests wait in the other servers, on average, when
	// they are too busy to be asked twice.
	busyQueue = 2 * time.Millisecond
	// limpStreak slow answers in a row, over at least limpTime, and a server limps;
	// soundStreak quick ones to probes and it does no more. Slow are answers of at
	// least minLimp, and limpTimes halves of the others' p99; others are told from
	// slowTimes of it on.
	limpStreak  = 8
	limpTime    = 200 * time.Millisecond
	soundStreak = 3
	minLimp     = 10 * time.Millisecond
	limpTimes   = 3
	// minSilence is for how long a server must have answered nothing before others
	// are told: one that is down, or stands still, is known by its heartbeats sooner.
	minSilence = 6 * time.Second
)

// pace knows how fast each chunk server answers reads, and which one is silent or
// limps. A request that takes a few times the recent p99 of its kind, of its
// server or of the others, is late: the read may ask other shards within a budget
// of requests, and not while the other servers are busy, so that hedges do not feed
// an overload. A server that answered nothing for minSilent and longer is suspect, and
// no budget is asked. It also is when its answers take longer than nearly all of the
// others' time after time. Later reads go around
// a suspect server, and a probe finds out when it is sound again: extra requests are
// that server's share then. Safe for concurrent use.
type pace struct {
	suspects atomic.Int32 // so that a read need not lock when there is none

	mu      sync.Mutex
	servers map[layout.ServerID]*serverPace // guarded by mu, as is all below
	budget  int                             // extra requests times hedgePart; below 0 after many at once
	slow    [kinds]slowness                 // by kind
}

// slowness is what counts as slow, worked out now and then. Guarded by pace.mu.
type slowness struct {
	age  int // requests since it was worked out
	p99  time.Duration
	fast time.Duration // what the fastest server seldom beats
}

// slowAge is after how many requests slowness is worked out again, newSlowAge while
// nothing is known.
const (
	slowAge    = 256
	newSlowAge = 16
)

// serverPace is guarded by pace.mu.
type serverPace struct {
	kinds    [kinds]quantile
	queue    time.Duration
	answered time.Time     // when the latest answer came
	waited   time.Duration // how long requests since then had waited in vain when others were quicker
	suspect  bool
	silent   time.Time     // while it is suspect for its silence: since when it owes an answer
	limps    bool          // suspect for its slowness, not for its silence
	streak   int           // slow answers in a row; of one that limps, quick ones to probes
	since    time.Time     // while streak counts slow ones: of the first
	slowest  time.Duration // the latest slow answer
	slowKind int           // and of which kind it was
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

func kindOf(bytes int) int {
	switch {
	case bytes >= hugeRead:
		return 2
	case bytes >= largeRead:
		return 1
	}
	return 0
}

// slowness gives what is slow for a kind: the median of the servers' p99. mu is held.
func (p *pace) slowness(kind int) *slowness {
	s := &p.slow[kind]
	if s.age--; s.age > 0 {
		return s
	}
	var p99, fast [16]time.Duration
	many, few := p99[:0], fast[:0]
	for _, server := range p.servers {
		if at := server.kinds[kind].get(); at > 0 && !server.suspect && len(many) < len(p99) {
			many, few = append(many, at), append(few, server.kinds[kind].fast)
		}
	}
	*s = slowness{age: newSlowAge}
	if len(many) > 1 {
		slices.Sort(many)
		s.age, s.p99, s.fast = slowAge, many[(len(many)-1)/2], slices.Min(few)
	}
	return s
}

// sent counts a request and tells how long its answer may take. One that asks for
// what another shard should have given is extra: it allows no more of its kind.
func (p *pace) sent(id layout.ServerID, bytes int, extra bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !extra {
		p.budget = min(p.budget+1, maxExtra*hedgePart)
	}
	kind := kindOf(bytes)
	late := lateTimes * p.of(id).kinds[kind].get()
	if others := slowTimes * p.slowness(kind).p99; others > 0 && (late == 0 || others < late) {
		late = others
	}
	if late == 0 {
		return newLate
	}
	return min(max(late, minLate), maxLate)
}

// inTime refuses a read whose deadline leaves less than what the quickest server
// seldom beats with a request like the largest of its own, in bytes.
func (p *pace) inTime(ctx context.Context, largest int) error {
	end, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	p.mu.Lock()
	least := p.slowness(kindOf(largest)).fast
	p.mu.Unlock()
	if left := time.Until(end); left < least {
		return errs.New(errs.Deadline, "read from the shards", "%v are left, a request of %d bytes takes %v at least", max(left, 0), largest, least)
	}
	return nil
}

// got notes an answer; queue is how long it waited in the server. fresh tells that
// the server became suspect by it: it is to be probed.
func (p *pace) got(id layout.ServerID, bytes int, took, queue time.Duration, now time.Time) (fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	kind := kindOf(bytes)
	s.kinds[kind].add(took)
	s.queue += (queue - s.queue) / 16
	s.answered, s.waited = now, 0
	if s.suspect && !s.limps {
		p.clear(s)
	}
	if took < minLimp {
		s.streak = 0
		return false
	}
	return p.judge(s, kind, took-queue, now)
}

// outrun notes that others were faster than a late request, which is canceled after
// so long.
func (p *pace) outrun(id layout.ServerID, bytes int, took time.Duration, now time.Time) (fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	s.waited += took
	return p.judge(s, kindOf(bytes), took, now)
}

// judge counts slow answers in a row, less the time that a request waited for others
// in the server's queue. mu is held.
func (p *pace) judge(s *serverPace, kind int, took time.Duration, now time.Time) (fresh bool) {
	if s.suspect {
		return false
	}
	if !p.isSlow(kind, took) {
		s.streak = 0
		return false
	}
	if s.streak == 0 {
		s.since = now
	}
	s.slowest, s.slowKind = took, kind
	if s.streak++; s.streak < limpStreak || now.Sub(s.since) < limpTime {
		return false
	}
	s.suspect, s.limps, s.streak = true, true, 0
	p.suspects.Add(1)
	return true
}

// isSlow compares with what nearly all of the others' answers take. mu is held.
func (p *pace) isSlow(kind int, took time.Duration) bool {
	others := p.slowness(kind).p99
	return others > 0 && 2*took > limpTimes*others
}

// clear makes a server one like others. mu is held.
func (p *pace) clear(s *serverPace) {
	if s.suspect {
		s.suspect, s.limps, s.streak = false, false, 0
		p.suspects.Add(-1)
	}
}

// heard notes that a server answered, though not with what it was asked for.
func (p *pace) heard(id layout.ServerID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	s.answered, s.waited = now, 0
}

// trust takes a server for one that answers: it refuses connections, which costs
// no read any time.
func (p *pace) trust(id layout.ServerID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	s.answered, s.waited = now, 0
	p.clear(s)
}

// probed takes in a probe's answer and tells whether the server is sound.
func (p *pace) probed(id layout.ServerID, took time.Duration, now time.Time) (sound bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	s.answered, s.waited = now, 0
	if s.limps {
		kind := 0
		if p.slowness(kind).p99 == 0 { // nobody reads so little
			kind = s.slowKind
		}
		if s.streak++; took >= minLimp && p.isSlow(kind, took) {
			s.streak = 0
		}
		if s.streak < soundStreak {
			return false
		}
		s.kinds = [kinds]quantile{} // of its bad time
	}
	p.clear(s)
	return true
}

// hedge asks whether other shards may be asked beside a request that is late; what
// is sent then is told to spend. If they may not, again is when to ask next. fresh
// tells that the server became suspect by this: it is to be probed.
func (p *pace) hedge(id layout.ServerID, bytes int, sentAt, now time.Time) (granted, fresh bool, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(id)
	since := sentAt
	if s.answered.After(since) {
		since = s.answered
	}
	silent := now.Sub(since) + s.waited
	most := newSilent
	if usual := s.kinds[kindOf(bytes)].get(); usual > 0 {
		most = min(max(minSilent, lateTimes*usual), maxSilent)
	}
	if silent >= most {
		fresh = !s.suspect
		if fresh {
			s.suspect, s.silent = true, since
			p.suspects.Add(1)
		}
		return true, fresh, 0
	}
	return p.affords(s), false, max(most-silent, watchTick)
}

// retry asks whether other shards may be asked in place of one whose server won't
// answer in time; what is sent then is told to spend.
func (p *pace) retry(id layout.ServerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.affords(p.of(id))
}

// spend takes extra requests out of the budget.
func (p *pace) spend(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget -= requests * hedgePart
}

// affords tells whether servers but one may be asked for what that one should give.
// mu is held.
func (p *pace) affords(but *serverPace) bool { return p.budget >= hedgePart && !p.busy(but) }

// busy tells whether the servers but one are too busy to be asked twice. mu is held.
func (p *pace) busy(but *serverPace) bool {
	var sum time.Duration
	n := time.Duration(0)
	for _, s := range p.servers {
		if s != but && !s.suspect {
			sum, n = sum+s.queue, n+1
		}
	}
	return n > 0 && sum/n > busyQueue
}

func (p *pace) suspect(id layout.ServerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[id]
	return s != nil && s.suspect
}

// limping tells whether a server is suspect for its slowness, or has been for its
// silence for long; how long the latest of its slow answers took, or the silence; and
// how long others' reads take at most, mostly.
func (p *pace) limping(id layout.ServerID, now time.Time) (took, others time.Duration, limps bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[id]
	switch {
	case s == nil || !s.suspect:
		return 0, 0, false
	case !s.limps:
		took = now.Sub(s.silent)
		return took, p.slowness(0).p99, took >= minSilence
	}
	others = p.slowness(s.slowKind).p99
	return s.slowest, others, s.slowest > slowTimes*others
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
