package inprocess

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestAVictimThatCannotBeReadDoesNotEndTheCleaning lets every copy of a block of one
// segment rot, one that is live: no decoding brings it back. The other segments are
// cleaned all the same, here and when nothing but the spoilt one is left.
func TestAVictimThatCannotBeReadDoesNotEndTheCleaning(t *testing.T) {
	const part = 4 * mib
	c := Start(t, Options{Chunkds: 3, Client: unattended})
	cell, v := volume(t, c, 4*part, 2, 1)
	model := pattern(1, 4*part)
	known := map[string]bool{}
	var fresh []string // the shards of the second segment
	for i := range int64(4) {
		write(t, v, model[i*part:][:part], i*part)
		closed(t, v)
		names := shards(t, c)
		if i == 1 {
			fresh = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
		}
		for _, name := range names {
			known[name] = true
		}
		v = open(t, cell, "v", writing)
	}
	for i := range int64(4 * part / block / 2) { // every second block
		copy(model[2*i*block:], pattern(uint64(i+2), block))
		v.WriteAsync(model[2*i*block:][:block], 2*i*block)
	}
	closed(t, v)
	for _, s := range c.Chunkds { // the second row, the odd block of every unit, and a shard's parity
		for _, name := range fresh {
			if _, err := s.Disk.Stat("shards/" + name); err == nil {
				if err := s.Disk.FlipBit("shards/"+name, block+100, 3); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	before := storedOf(t, cell)
	v = open(t, cell, "v", writing)
	report, err := v.Clean(t.Context())
	if err != nil || report.Unreadable != 1 || report.Segments < 3 {
		t.Errorf("%+v %v", report, err)
	}
	again, err := v.Clean(t.Context())
	if err != nil || again.Unreadable != 0 || again.Moved > 0 {
		t.Errorf("the second cleaning tries it at once: %+v %v", again, err)
	}
	for i := range int64(4) {
		if i != 1 {
			holds(t, v, model[i*part:][:part], i*part)
		}
	}
	closed(t, v)
	c.Eventually("the space of the others comes back", func() error {
		if n := storedOf(t, cell); n > 4*part*3/2+part*3/2+mib {
			return fmt.Errorf("%d MiB are stored, %d were", n/mib, before/mib)
		}
		return nil
	})
	if log := c.log.String(); !strings.Contains(log, "segment not cleaned") {
		t.Error("nobody says so")
	}
}

// shards lists the names of all shards' files.
func shards(t *testing.T, c *Cell) (list []string) {
	t.Helper()
	for _, s := range c.Chunkds {
		list = append(list, shardsOn(t, s)...)
	}
	return list
}

// shardsOn lists the names of a chunk server's shards' files.
func shardsOn(t *testing.T, s *Chunkd) []string {
	t.Helper()
	names, err := s.Disk.List("shards")
	if err != nil {
		t.Fatal(err)
	}
	return names
}
