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
	if got := p.sent(1, 4096); got != newLate {
		t.Errorf("an unknown server is late after %v", got)
	}
	for _, c := range []struct{ took, min, max time.Duration }{
		{100 * time.Microsecond, minLate, minLate}, {10 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond}, {3 * time.Second, maxLate, maxLate},
	} {
		for range 2 * quantileWindow {
			p.got(1, 4096, c.took, 0, now)
		}
		if got := p.sent(1, 4096); got < c.min || got > c.max {
			t.Errorf("after answers in %v: late after %v, want %v to %v", c.took, got, c.min, c.max)
		}
		if got := p.sent(1, largeRead); got != newLate {
			t.Errorf("large reads learned from small ones: %v", got)
		}
	}
}

func TestHedgesHaveABudgetButForSilentServers(t *testing.T) {
	p, now := newPace(), time.Now()
	p.got(1, 4096, time.Millisecond, 0, now)
	const requests = 1000
	granted := 0
	for range requests {
		p.sent(1, 4096)
		if ok, _ := p.hedge(1, now.Add(-time.Second)); ok { // it answered something since
			granted++
		}
	}
	if granted < requests/hedgePart-1 || granted > requests/hedgePart+1 {
		t.Errorf("%d of %d requests were hedged", granted, requests)
	}
	later := now.Add(time.Second)
	for i := range 3 {
		if ok, fresh := p.hedge(1, later); !ok || fresh != (i == 0) {
			t.Errorf("hedge %d of a silent server: %v, fresh %v", i, ok, fresh)
		}
	}
}

func TestReadsGoAroundSilentServersAsFarAsParityAllows(t *testing.T) {
	p, now := newPace(), time.Now()
	s := &segment{geometry: layout.Geometry{K: 2, M: 1}, shards: []place{{server: 1}, {server: 2}, {server: 3}}}
	if p.down(s) != 0 {
		t.Error("a shard is down, and nobody was late")
	}
	p.hedge(2, now)
	if got := p.down(s); got != 0b010 {
		t.Errorf("down %b, want the second shard", got)
	}
	if got := p.inOrder(s, 0b111); len(got) != 3 || got[2] != 1 {
		t.Errorf("order %v", got)
	}
	p.hedge(3, now)
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
			p.sent(id, 4096)
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
		last := i == limpStreak-1
		if i%2 == 0 {
			p.got(1, 4096, slow, 0, now)
		} else if fresh := p.outrun(1, 4096, slow); fresh != last {
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

func TestSlownessIsMeasuredByTheOthers(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	for range 200 { // all slow down: a server is no worse than others
		for id := layout.ServerID(1); id <= 6; id++ {
			p.sent(id, 4096)
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
	if got := p.sent(1, 4096); got != minLate {
		t.Errorf("a slow server among quick ones is late after %v, want %v", got, minLate)
	}
}

func TestNobodyHedgesWhileTheServersAreBusy(t *testing.T) {
	now := time.Now()
	p := pacedServers(now)
	if ok, _ := p.hedge(1, now.Add(-time.Second)); !ok {
		t.Error("no hedge while all is quiet")
	}
	for range 100 {
		p.got(2, 4096, 100*time.Microsecond, 20*time.Millisecond, now)
	}
	if ok, _ := p.hedge(1, now.Add(-time.Second)); ok {
		t.Error("a hedge, and requests wait in the other servers")
	}
}

func TestADeadlineThatCannotBeMetIsRefusedAtOnce(t *testing.T) {
	p := pacedServers(time.Now())
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	if err := p.inTime(ctx); err != nil {
		t.Errorf("an hour is too little: %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(10*time.Microsecond))
	defer cancel()
	if err := p.inTime(late); errs.KindOf(err) != errs.Deadline {
		t.Errorf("10 µs are enough for what takes 100: %v", err)
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
