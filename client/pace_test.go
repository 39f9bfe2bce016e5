package client

import (
	"testing"
	"time"

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
			p.got(1, 4096, c.took, now)
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
	p.got(1, 4096, time.Millisecond, now)
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
	p.got(2, 4096, time.Millisecond, now.Add(time.Second))
	p.trust(3, now.Add(time.Second))
	if p.down(s) != 0 || p.suspects.Load() != 0 {
		t.Errorf("%d suspects are left", p.suspects.Load())
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
