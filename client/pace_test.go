package client

import (
	"context"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
)

func TestLatenessFollowsWhatAServerDoes(t *testing.T) {
	p, now := newPace(), time.Now()
	if got := p.sent(1, 4096, false); got != newLate {
		t.Errorf("an unknown server is late after %v", got)
	}
	for _, c := range []struct{ took, min, max time.Duration }{
		{100 * time.Microsecond, minLate, minLate}, {10 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond}, {3 * time.Second, maxLate, maxLate},
	} {
		for range 2 * quantileWindow {
			p.got(1, 4096, c.took, 0, now)
		}
		if got := p.sent(1, 4096, false); got < c.min || got > c.max {
			t.Errorf("after answers in %v: late after %v, want %v to %v", c.took, got, c.min, c.max)
		}
		if got := p.sent(1, largeRead, false); got != newLate {
			t.Errorf("large reads learned from small ones: %v", got)
		}
	}
}

// hedges asks for a hedge of each of many requests, which are late after a few
// milliseconds, one after the other; each takes so many requests. It gives the
// requests that hedges took, and how many hedges there were.
func hedges(p *pace, requests, each int, answers bool) (extra, granted int) {
	now := time.Now()
	for range requests {
		sentAt := now
		p.sent(1, 4096, false)
		now = now.Add(minLate)
		if ok, _, _ := p.hedge(1, 4096, sentAt, now); ok {
			for range each {
				p.sent(2, 4096, true)
			}
			p.spend(each)
			extra, granted = extra+each, granted+1
		}
		if answers {
			now = now.Add(time.Millisecond)
			p.got(1, 4096, minLate+time.Millisecond, 0, now)
		}
	}
	return extra, granted
}

func TestTheRequestsOfHedgesAreCountedAgainstTheBudget(t *testing.T) {
	const requests = 2000
	for _, each := range []int{1, 4, 16} {
		extra, _ := hedges(newPace(), requests, each, true)
		if want := requests / hedgePart; extra < want-each || extra > want+each {
			t.Errorf("hedges of %d requests each took %d for %d, want %d", each, extra, requests, want)
		}
	}
}

// One request after the other, and the one server answers each of them late: it
// answered nothing since the latest was sent, which says nothing.
func TestALateAnswerIsNoSilence(t *testing.T) {
	p := newPace()
	if _, granted := hedges(p, 500, 4, true); granted > 500/hedgePart/4+1 || p.suspect(1) {
		t.Errorf("%d hedges, suspect %v", granted, p.suspect(1))
	}
	busy := pacedServers(time.Now())
	for range 100 {
		busy.got(2, 4096, 100*time.Microsecond, 20*time.Millisecond, time.Now())
	}
	if _, granted := hedges(busy, 500, 4, true); granted > 0 {
		t.Errorf("%d hedges while requests wait in the other servers", granted)
	}
}

func TestASilentServerNeedsNoBudget(t *testing.T) {
	p, now := newPace(), time.Now()
	for range quantileFew {
		p.got(1, 4096, time.Millisecond, 0, now)
	}
	granted, _, again := p.hedge(1, 4096, now, now.Add(minLate))
	if granted || again != minSilent-minLate {
		t.Errorf("granted %v with the budget spent; to be asked again after %v", granted, again)
	}
	granted, fresh, _ := p.hedge(1, 4096, now, now.Add(minSilent))
	if !granted || !fresh || !p.suspect(1) {
		t.Errorf("after %v without an answer: granted %v, to be probed %v", minSilent, granted, fresh)
	}
	if granted, fresh, _ = p.hedge(1, 4096, now, now.Add(minSilent)); !granted || fresh {
		t.Errorf("once more: granted %v, to be probed again %v", granted, fresh)
	}
}

func TestSilenceIsMeasuredByWhatAServerUsuallyTakes(t *testing.T) {
	p, now := newPace(), time.Now()
	for range 100 {
		p.got(1, 1<<20, 200*time.Millisecond, 0, now)
	}
	if _, fresh, _ := p.hedge(1, 1<<20, now, now.Add(2*minSilent)); fresh {
		t.Error("silent after as long as it usually takes")
	}
	if _, fresh, _ := p.hedge(1, 1<<20, now, now.Add(maxSilent)); !fresh {
		t.Errorf("not silent after %v", maxSilent)
	}
	if _, fresh, _ := p.hedge(2, 1<<20, now, now.Add(newSilent-1)); fresh {
		t.Errorf("a server of which nothing is known is silent before %v", newSilent)
	}
}

func TestRequestsThatOthersOutranMakeASilenceToo(t *testing.T) {
	p, now := newPace(), time.Now()
	for range quantileFew {
		p.got(1, 4096, time.Millisecond, 0, now)
	}
	for i := range int(minSilent/minLate) - 1 {
		if _, fresh, _ := p.hedge(1, 4096, now, now.Add(minLate)); fresh {
			t.Fatalf("silent after %d requests of %v", i+1, minLate)
		}
		p.outrun(1, 4096, minLate, now.Add(minLate))
	}
	if _, fresh, _ := p.hedge(1, 4096, now, now.Add(minLate)); !fresh {
		t.Error("requests waited in vain again and again, and the server is not suspect")
	}
	p.heard(1, now.Add(minLate))
	if _, _, again := p.hedge(1, 4096, now, now.Add(2*minLate)); again != minSilent-minLate {
		t.Errorf("after an answer to be asked again after %v", again)
	}
}

func TestReadsGoAroundSilentServersAsFarAsParityAllows(t *testing.T) {
	p, now := newPace(), time.Now()
	s := &segment{geometry: layout.Geometry{K: 2, M: 1}, shards: []place{{server: 1}, {server: 2}, {server: 3}}}
	if p.down(s) != 0 {
		t.Error("a shard is down, and nobody was late")
	}
	p.hedge(2, 4096, now, now.Add(newSilent))
	if got := p.down(s); got != 0b010 {
		t.Errorf("down %b, want the second shard", got)
	}
	if got := p.inOrder(s, 0b111); len(got) != 3 || got[2] != 1 {
		t.Errorf("order %v", got)
	}
	p.hedge(3, 4096, now, now.Add(newSilent))
	if got := p.down(s); got != 0 {
		t.Errorf("down %b: more than the parity makes up for", got)
	}
	p.got(2, 4096, time.Millisecond, 0, now.Add(time.Second))
	p.trust(3, now.Add(time.Second))
	if p.down(s) != 0 || p.suspects.Load() != 0 {
		t.Errorf("%d suspects are left", p.suspects.Load())
	}
}

// pacedServers is a pace that knows six servers that answer in 100 µs.
func pacedServers(now time.Time) *pace {
	p := newPace()
	for id := layout.ServerID(1); id <= 6; id++ {
		for range 100 {
			p.sent(id, 4096, false)
			p.got(id, 4096, 100*time.Microsecond, 0, now)
		}
	}
	return p
}

func TestAServerThatLimpsIsReadAroundUntilItIsSound(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	const slow = 50 * time.Millisecond
	for i := range limpStreak {
		if p.suspect(1) {
			t.Fatalf("suspect after %d slow answers", i)
		}
		now = now.Add(slow)
		last := i == limpStreak-1
		if i%2 == 0 {
			p.got(1, 4096, slow, 0, now)
		} else if fresh := p.outrun(1, 4096, minLate, now); fresh != last {
			t.Errorf("after %d slow answers: to be probed: %v", i+1, fresh)
		}
	}
	if p.got(1, 4096, slow, 0, now); !p.suspect(1) {
		t.Fatal("an answer, slow as ever, cleared a server that limps")
	}
	for _, took := range []time.Duration{time.Millisecond, time.Millisecond, slow, time.Millisecond, time.Millisecond} {
		if p.probed(1, took, now) {
			t.Fatal("sound after too few quick answers in a row")
		}
	}
	if !p.probed(1, time.Millisecond, now) || p.suspect(1) || p.suspects.Load() != 0 {
		t.Error("not sound after quick answers")
	}
}

// A stall makes many answers late at once, and a server's queue makes them late for as
// long as it is full: neither is limping.
func TestAStallAndAQueueAreNoLimping(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	for range 4 * limpStreak {
		p.got(1, 4096, 50*time.Millisecond, 0, now)
	}
	p.got(1, 4096, time.Millisecond, 0, now.Add(limpTime))
	for range 4 * limpStreak {
		now = now.Add(limpTime)
		p.got(1, 4096, 50*time.Millisecond, 50*time.Millisecond, now)
	}
	if p.suspect(1) {
		t.Error("suspect")
	}
}

// Large reads alone, of which the others' take 10 ms: a server that takes 50 more is
// seen by these, and its probes, which are small, are compared with them too.
func TestAServerThatLimpsIsSeenByLargeReadsAlone(t *testing.T) {
	now := time.Now()
	p := newPace()
	for id := layout.ServerID(1); id <= 6; id++ {
		for range 100 {
			p.sent(id, 1<<20, false)
			p.got(id, 1<<20, 10*time.Millisecond, 0, now)
		}
	}
	for range 2 * limpStreak {
		now = now.Add(60 * time.Millisecond)
		p.got(1, 1<<20, 60*time.Millisecond, 0, now)
	}
	if !p.suspect(1) {
		t.Fatal("not suspect")
	}
	if _, _, tell := p.limping(1, now); tell {
		t.Error("others are told of what is not that slow")
	}
	for range 2 * soundStreak {
		if p.probed(1, 50*time.Millisecond, now) {
			t.Fatal("sound with slow answers to probes")
		}
	}
}

func TestSlownessIsMeasuredByTheOthers(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	for range 200 { // all slow down: a server is no worse than others
		for id := layout.ServerID(1); id <= 6; id++ {
			p.sent(id, 4096, false)
			p.got(id, 4096, 4*time.Millisecond, 0, now)
		}
	}
	if p.suspects.Load() != 0 {
		t.Errorf("%d servers are suspect, all are alike", p.suspects.Load())
	}
	p = pacedServers(now)
	for range 300 {
		p.got(1, 4096, 9*time.Millisecond, 0, now)
	}
	if got := p.sent(1, 4096, false); got != minLate {
		t.Errorf("a slow server among quick ones is late after %v, want %v", got, minLate)
	}
}

func TestNobodyHedgesWhileTheServersAreBusy(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	if ok, _, _ := p.hedge(1, 4096, now, now.Add(minLate)); !ok {
		t.Error("no hedge while all is quiet")
	}
	for range 100 {
		p.got(2, 4096, 100*time.Microsecond, 20*time.Millisecond, now)
	}
	if ok, _, _ := p.hedge(1, 4096, now, now.Add(minLate)); ok {
		t.Error("a hedge, and requests wait in the other servers")
	}
}

func TestADeadlineThatCannotBeMetIsRefusedAtOnce(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	for id := layout.ServerID(1); id <= 6; id++ {
		for range 100 {
			p.got(id, 1<<20, 10*time.Second, 0, now)
		}
	}
	for _, c := range []struct {
		left    time.Duration
		largest int
		want    errs.Kind
	}{
		{time.Hour, 4096, errs.OK}, {10 * time.Microsecond, 4096, errs.Deadline},
		{time.Hour, 1 << 20, errs.OK}, {time.Second, 1 << 20, errs.Deadline}, {time.Second, 4096, errs.OK},
		{time.Second, largeRead, errs.OK}, // nothing is known of these
	} {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(c.left))
		if err := p.inTime(ctx, c.largest); errs.KindOf(err) != c.want {
			t.Errorf("%v for %d bytes: %v, want %v", c.left, c.largest, err, c.want)
		}
		cancel()
	}
}

func TestTheQuantileIsAnUpperBoundWithinAHalf(t *testing.T) {
	var q quantile
	for i := range 1000 {
		q.add(time.Duration(i) * time.Microsecond)
	}
	if got := q.get(); got < 980*time.Microsecond || got > 1600*time.Microsecond {
		t.Errorf("p99 of 0 to 1 ms is %v", got)
	}
}
