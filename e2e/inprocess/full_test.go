package inprocess

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"strake/client"
	"strake/internal/layout"
)

// TestAFullCellRefusesWritesAndKeepsWhatItHas fills the devices: writes are refused
// while the whole reserve is free; discards, flushes and reads go on, and what the
// reserve lends for them is little.
func TestAFullCellRefusesWritesAndKeepsWhatItHas(t *testing.T) {
	long(t)
	const disk = 256 * mib
	c := Start(t, Options{Chunkds: 2, DiskBytes: disk, Client: unattended}) // else cleaning makes room
	cell := c.Dial()
	create(t, cell, "v", 100*mib, 1, 1)
	create(t, cell, "w", 100*mib, 1, 1)
	v := open(t, cell, "v", writing)
	want := pattern(1, 20*mib)
	write(t, v, want, 0)
	flush(t, v)
	p := pattern(2, mib)
	refused := func() {
		var err error
		for i := int64(0); i < 1000 && err == nil; i++ { // the log grows, whatever is overwritten
			_, err = v.WriteAt(p, 30*mib+i%10*mib)
		}
		fails(t, "a write to a full cell", err, client.ErrNoSpace)
	}
	refused()
	flush(t, v)
	c.Eventually("the status tells that no segment finds room", func() error {
		s, err := cell.Status(t.Context())
		if err == nil && (s.Health == "healthy" || !strings.Contains(strings.Join(s.Problems, "\n"), "no new segment of 1+1 finds room")) {
			refused() // room that ended segments gave up goes as well
			err = fmt.Errorf("health %s, problems %q", s.Health, s.Problems)
		}
		return err
	})
	c.keeps("data", layout.ForData, 0)
	for i := range int64(8) {
		if err := v.Discard(t.Context(), 30*mib+i*4096, 4096); err != nil {
			t.Fatalf("a discard in a full cell: %v", err)
		}
		if _, err := v.WriteAt(p, 60*mib); err != nil && !errors.Is(err, client.ErrNoSpace) {
			t.Fatalf("a write to a full cell: %v", err)
		}
	}
	c.keeps("data and discards", layout.ForData, 4*mib) // writes that came in with these would take 8 MiB
	if err := v.Discard(t.Context(), 30*mib, 20*mib); err != nil {
		t.Errorf("a discard in a full cell: %v", err)
	}
	holds(t, v, want, 0)
	holds(t, v, make([]byte, mib), 35*mib)
	c.keeps("need", layout.ForNeed, 0)
	closed(t, v)
}

// keeps checks, by what the disks count, that each leaves free what a purpose must,
// but for so many bytes.
func (c *Cell) keeps(what string, p layout.Purpose, but uint64) {
	c.t.Helper()
	for _, s := range c.Chunkds {
		u, err := s.Disk.Usage()
		if err != nil {
			c.t.Fatalf("ask for the fill: %v", err)
		}
		if kept := p.Kept(u.Total) - but; u.Free < kept {
			c.t.Errorf("%s: %d of %d bytes are free on server %d, %d are to be kept", what, u.Free, u.Total, s.ID(), kept)
		}
	}
}
