package client

import (
	"testing"
	"time"
)

// A cleaner that is told of readers slows down for a while, unless space is short.
func TestACleanerGivesWayToReaders(t *testing.T) {
	shards := &shardServers{}
	c := &cleaner{v: &Volume{cell: &Cell{shards: shards}}}
	idle, short := &round{rate: idleRate}, &round{rate: idleRate, inTurn: true}
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
