package inprocess

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"strake/client"
)

// TestMapCheckpointsCarryAVolume forces a map checkpoint every few hundred
// stripes, and reopens from the newest root and what came after it.
func TestMapCheckpointsCarryAVolume(t *testing.T) {
	const blocks = 2000
	c := Start(t, Options{Chunkds: 4, Client: client.Config{Tuning: client.Tuning{MapHeaders: 60, CloseHeaders: 20}}})
	cell, v := volume(t, c, blocks*block, 2, 1)
	r := rand.New(rand.NewPCG(3, 3))
	var h history
	for round := range 4 {
		for range 8 {
			h.run(t, r, v, blocks, 200)
			if err := h.flush(t.Context(), v); err != nil { // many stripes, not few large ones
				t.Fatal(err)
			}
		}
		if round%2 == 0 {
			c.Eventually("a root is recorded", func() error {
				if v.Stats().MapRoots == 0 {
					return fmt.Errorf("none is; %+v", v.Stats())
				}
				return nil
			})
			closed(t, v)
			info, err := cell.Volume(t.Context(), "v")
			if err != nil || info.MapRoot == 0 {
				t.Fatalf("root %d: %v", info.MapRoot, err)
			}
		} else {
			cell.Abandon()
			cell = c.Dial()
		}
		v = open(t, cell, "v", forced)
		if err := h.check(t.Context(), v, blocks); err != nil {
			t.Fatal(err)
		}
		if err := h.keep(t.Context(), v, blocks); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, v)
}

// TestMapsStayUnderTheirCapWhoeverWrites writes single blocks at random, never reads
// and never cleans: what map checkpoints load and make stays under the cap of all
// volumes together.
func TestMapsStayUnderTheirCapWhoeverWrites(t *testing.T) {
	const blocks, mapCap = 8 << 10, 48 << 10
	c := Start(t, Options{Chunkds: 3, Client: client.Config{MapCap: mapCap, Tuning: client.Tuning{MapHeaders: 1, CleanEvery: -1}}})
	cell := c.Dial()
	var volumes []*client.Volume
	for i := range 3 {
		name := fmt.Sprintf("v%d", i)
		create(t, cell, name, blocks*block, 2, 1)
		v := open(t, cell, name, writing)
		volumes = append(volumes, v)
		p := pattern(uint64(i), block)
		for _, b := range rand.New(rand.NewPCG(uint64(i), 1)).Perm(blocks) {
			v.WriteAsync(p, int64(b)*block)
		}
		flush(t, v)
		c.Eventually("the map is in a root and below the cap", func() error {
			if s := v.Stats(); s.MapRoots == 0 || s.MapMemory > mapCap {
				return fmt.Errorf("%d roots, %d bytes of %d", s.MapRoots, s.MapMemory, mapCap)
			}
			return nil
		})
	}
	c.Eventually("the maps are below the cap", func() error {
		held := uint64(0)
		for _, v := range volumes {
			held += v.Stats().MapMemory
		}
		holds(t, volumes[1], pattern(1, block), 0) // whoever looks needs the room
		if held > mapCap {
			return fmt.Errorf("they hold %d bytes, the cap is %d", held, mapCap)
		}
		return nil
	})
	for i, v := range volumes {
		holds(t, v, pattern(uint64(i), block), 17*block)
		closed(t, v)
	}
}

// TestOverwrittenSpaceComesBack writes the same few blocks many times over: the
// servers must not keep all of that.
func TestOverwrittenSpaceComesBack(t *testing.T) {
	long(t)
	c := Start(t, Options{Chunkds: 3, Client: client.Config{Tuning: client.Tuning{MapHeaders: 20, CloseHeaders: 1}}})
	cell, v := volume(t, c, 4*mib, 2, 1)
	p := pattern(1, mib)
	for i := range int64(150) {
		write(t, v, p, i%4*mib)
	}
	flush(t, v)
	write(t, v, p, 0)
	closed(t, v)
	c.Eventually("the space of what was overwritten is free", func() error {
		s, err := cell.Status(t.Context())
		if err == nil && s.UsedBytes > 60*mib {
			err = fmt.Errorf("%d MiB are used, %d segments, after 150 MiB were written over 4 MiB", s.UsedBytes/mib, s.Segments)
		}
		return err
	})
	v = open(t, cell, "v", writing)
	for i := range int64(4) {
		holds(t, v, p, i*mib)
	}
	closed(t, v)
}

// TestAReaderOfALiveVolumeSeesWhatWasFlushed follows a writer of another process.
func TestAReaderOfALiveVolumeSeesWhatWasFlushed(t *testing.T) {
	const blocks = 400
	c := Start(t, Options{Client: client.Config{Tuning: client.Tuning{MapHeaders: 150}}})
	_, v := volume(t, c, blocks*block, 4, 2)
	other := c.Dial()
	reader := open(t, other, "v", client.OpenOptions{})
	r := rand.New(rand.NewPCG(11, 11))
	var h history
	for range 12 {
		h.run(t, r, v, blocks, 50+r.IntN(100))
		if err := h.flush(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if err := reader.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.check(t.Context(), reader, blocks); err != nil {
			t.Fatal(err)
		}
		if r.IntN(3) == 0 {
			h.run(t, r, v, blocks, 50) // under way while the reader looks
			if err := reader.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := h.check(t.Context(), reader, blocks); err != nil {
				t.Fatal(err)
			}
		}
	}
	fails(t, "write through a reader", func() error { _, err := reader.WriteAt(make([]byte, 1), 0); return err }(), client.ErrReadOnly)
	closed(t, reader)
	closed(t, v)
}

// TestAReaderOutlivesTheSegmentsItKnows overwrites all that a reader has mapped,
// until the segments are gone.
func TestAReaderOutlivesTheSegmentsItKnows(t *testing.T) {
	long(t)
	c := Start(t, Options{Chunkds: 3, Client: client.Config{Tuning: client.Tuning{MapHeaders: 20, CloseHeaders: 1}}})
	cell, v := volume(t, c, 4*mib, 2, 1)
	p := pattern(1, mib)
	for i := range int64(4) {
		write(t, v, p, i*mib)
	}
	flush(t, v)
	reader := open(t, cell, "v", client.OpenOptions{})
	holds(t, reader, p, mib)
	newer := pattern(2, mib)
	for i := range int64(60) {
		write(t, v, newer, i%4*mib)
	}
	closed(t, v)
	c.Eventually("the old segments are gone", func() error {
		s, err := cell.Status(t.Context())
		if err == nil && s.UsedBytes > 50*mib {
			err = fmt.Errorf("%d MiB are used", s.UsedBytes/mib)
		}
		return err
	})
	for i := range int64(4) { // the old bytes, or after a look the new ones
		if reads(t.Context(), reader, p, i*mib) != nil {
			holds(t, reader, newer, i*mib)
		}
	}
}
