package client

import (
	"testing"
	"time"
)

// A cleaner that is told of readers slows down for a while, unless space is short.
func TestACleanerGivesWayToReaders(t *testing.T) {
	shards := &shardServers{}
	c := &cleaner{v: &Volume{cell: &Cell{shards: shards}}}
	idle, short := &round{}, &round{inTurn: true}
	if got := c.rate(idle); got != idleRate {
		t.Errorf("alone: %d bytes a second", got)
	}
	shards.noteReading(time.Now().Add(time.Hour))
	if got, urgent := c.rate(idle), c.rate(short); got != readRate || urgent != idleRate {
		t.Errorf("beside readers: %d bytes a second, %d where space is short", got, urgent)
	}
	shards.noteReading(time.Now().Add(-2 * readingFor))
	if got := c.rate(idle); got != idleRate {
		t.Errorf("after readers: %d bytes a second", got)
	}
}

// A cleaner goes on slowly beside a client that writes, and faster within a second of
// the last write.
func TestACleanerKnowsWhenAClientStopsWriting(t *testing.T) {
	c := &cleaner{v: &Volume{cell: &Cell{shards: &shardServers{}}}}
	c.v.stats.writes.Add(1)
	if got, urgent := c.rate(&round{}), c.rate(&round{inTurn: true}); got != busyRate || urgent != idleRate {
		t.Errorf("beside a writer: %d bytes a second, %d where space is short", got, urgent)
	}
	var l lately
	begun := time.Now()
	for _, step := range []struct {
		after time.Duration
		count uint64
		want  bool
	}{{0, 5, true}, {900 * time.Millisecond, 5, true}, {time.Second, 5, false}, {2 * time.Second, 6, true}, {3 * time.Second, 6, false}} {
		if got := l.within(time.Second, step.count, begun.Add(step.after)); got != step.want {
			t.Errorf("after %v with count %d: %v", step.after, step.count, got)
		}
	}
}
