package inprocess

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strake/client"
)

// TestACrashedWritersVolumeIsAPrefix abandons a writer in the middle of its
// writes; with it, sometimes, m servers lose their power. Each round has a volume
// of its own: what the lost servers lacked of an older one must be rebuilt before
// its next loss.
func TestACrashedWritersVolumeIsAPrefix(t *testing.T) {
	t.Parallel()
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for _, lost := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("with %d servers lost", lost), func(t *testing.T) {
			c := Start(t, Options{Seed: uint64(lost), Client: client.Config{Tuning: client.Tuning{MapHeaders: 40}}})
			r := rand.New(rand.NewPCG(9, uint64(lost)))
			for round := range rounds {
				crash(t, c, r, fmt.Sprintf("v%d", round), lost)
			}
		})
	}
}

// TestAProcessThatFailedToTakeAVolumeOverDoesNotKeepItFromOthers: neither does one
// that gave up in the middle of closing it.
func TestAProcessThatFailedToTakeAVolumeOverDoesNotKeepItFromOthers(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	first, v := volume(t, c, 64*mib, 4, 2)
	want := pattern(7, mib)
	write(t, v, want, 0)
	flush(t, v)
	servers := c.Chunkds[:3]
	KillAll(servers...)
	first.Abandon()
	failed := c.Dial() // it lives on, as all below
	_, err := failed.Open(t.Context(), "v", forced)
	fails(t, "a take-over with 3 of 6 servers gone", err, client.ErrUndecided, client.ErrUnavailable)
	for _, s := range servers {
		s.Restart()
	}
	next := c.Dial()
	c.WaitUp(next, len(c.Chunkds))
	v = openOnceRecovered(t, c, next)
	holds(t, v, want, 0)
	write(t, v, want, mib)
	flush(t, v)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.CloseContext(now); err == nil {
		t.Error("it was closed in no time")
	}
	v = openOnceRecovered(t, c, c.Dial())
	holds(t, v, want, mib)
	closed(t, v)
}

// TestACloneReadsWhatItsParentFencedForLaterEpochs: a branch's epochs and its
// parent's go their own ways from the snapshot on.
func TestACloneReadsWhatItsParentFencedForLaterEpochs(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	first, v := volume(t, c, 64*mib, 4, 2)
	want := pattern(7, mib)
	write(t, v, want, 0)
	other := c.Dial()
	freeze(t, other, "v@a")
	if _, err := other.CloneVolume(t.Context(), "v@a", "w"); err != nil {
		t.Fatal(err)
	}
	servers := c.Chunkds[:3]
	KillAll(servers...)
	first.Abandon()
	for range 3 { // each fences what it reaches, for its own epoch
		_, err := other.Open(t.Context(), "v", forced)
		fails(t, "a take-over with 3 of 6 servers gone", err, client.ErrUndecided, client.ErrUnavailable)
	}
	for _, s := range servers {
		s.Restart()
	}
	c.WaitUp(other, len(c.Chunkds))
	w := open(t, other, "w", writing)
	holds(t, w, want, 0)
	write(t, w, want, mib)
	flush(t, w)
	closed(t, w)
}

// openOnceRecovered opens a volume for writing, without force, also while a janitor
// recovers it.
func openOnceRecovered(t *testing.T, c *Cell, cell *client.Cell) (v *client.Volume) {
	t.Helper()
	c.Eventually("the volume has no writer", func() (err error) {
		v, err = cell.Open(t.Context(), "v", writing)
		return err
	})
	return v
}

// crash has a writer crash twice, the second time alone.
func crash(t *testing.T, c *Cell, r *rand.Rand, name string, lost int) {
	const blocks = 300
	cell := c.Dial()
	create(t, cell, name, blocks*block, 4, 2)
	v := open(t, cell, name, writing)
	var h history
	for _, lost := range []int{lost, 0} {
		h.run(t, r, v, blocks, 200+r.IntN(600))
		var servers []*Chunkd
		for _, i := range r.Perm(len(c.Chunkds))[:lost] {
			servers = append(servers, c.Chunkds[i])
		}
		CutPowerAll(servers...)
		cell.Abandon()
		cell = c.Dial()
		v = open(t, cell, name, forced)
		if err := h.check(t.Context(), v, blocks); err != nil {
			t.Fatal(err)
		}
		if err := h.keep(t.Context(), v, blocks); err != nil {
			t.Fatal(err)
		}
		h.run(t, r, v, blocks, 100)
		for _, s := range servers {
			s.Restart()
		}
		c.WaitUp(cell, len(c.Chunkds))
	}
	closed(t, v)
}

func TestAWriterMovesOnWhenServersDie(t *testing.T) {
	const blocks = 300
	c := Start(t, Options{})
	cell, v := volume(t, c, blocks*block, 4, 2)
	r := rand.New(rand.NewPCG(4, 4))
	var h history
	h.run(t, r, v, blocks, 500)
	KillAll(c.Chunkds[1], c.Chunkds[4])
	h.run(t, r, v, blocks, 500)
	if err := h.flush(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := h.check(t.Context(), v, blocks); err != nil {
		t.Fatal(err)
	}
	closed(t, v)
	v = open(t, cell, "v", writing)
	if err := h.check(t.Context(), v, blocks); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 4} {
		c.Chunkds[i].Restart()
	}
	c.WaitUp(cell, 6)
	h.run(t, r, v, blocks, 300)
	closed(t, v)
}

// TestAWriterLeavesAHungServer pauses a server that takes part: writes and flushes
// go on elsewhere after a while, and the server is no hindrance when it is back.
// The metadata service grants a small cell one such move a minute.
func TestAWriterLeavesAHungServer(t *testing.T) {
	const blocks = 300
	c := Start(t, Options{})
	_, v := volume(t, c, blocks*block, 4, 2)
	r := rand.New(rand.NewPCG(12, 12))
	var h history
	h.run(t, r, v, blocks, 300)
	if err := h.flush(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	hung := c.Chunkds[2] // all six take part
	hung.Pause()
	within(t, slow*80*time.Second, "writes with a hung server", func() {
		h.run(t, r, v, blocks, 300)
		if err := h.flush(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	})
	hung.Resume()
	if err := h.check(t.Context(), v, blocks); err != nil {
		t.Fatal(err)
	}
	if v.Stats().Moves == 0 {
		t.Error("nothing moved")
	}
	closed(t, v)
}

// TestANewMetadataLeaderIsFound stops the metadata servers one after another.
func TestANewMetadataLeaderIsFound(t *testing.T) {
	long(t)
	const blocks = 200
	c := Start(t, Options{Metas: 3, Chunkds: 3})
	cell, v := volume(t, c, blocks*block, 2, 1)
	r := rand.New(rand.NewPCG(13, 13))
	var h history
	for _, m := range c.Metas {
		if err := m.Stop(); err != nil {
			t.Fatal(err)
		}
		h.run(t, r, v, blocks, 300)
		if err := h.flush(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		closed(t, v)
		c.Eventually("the volume opens again", func() (err error) {
			v, err = cell.Open(t.Context(), "v", writing)
			return err
		})
		if err := h.check(t.Context(), v, blocks); err != nil {
			t.Fatal(err)
		}
		m.Start()
	}
	closed(t, v)
}
