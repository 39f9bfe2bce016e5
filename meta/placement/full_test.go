package placement

import (
	"errors"
	"math/rand"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

// TestACellIsFilledUpToItsReserve places segments of long shards until there is no
// room: what is left is the reserve, and less than a short shard on each device.
func TestACellIsFilledUpToItsReserve(t *testing.T) {
	for seed := range int64(20) {
		rnd := rand.New(rand.NewSource(seed))
		c := cell(8, 1, flat)
		for i := range c.Devices {
			c.Devices[i].Total = 1 << 30
			c.Devices[i].Used = uint64(rnd.Int63n(100 << 20))
		}
		p := New(c)
		var err error
		placed := 0
		for ; err == nil; placed++ {
			req := Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 64 << 20}
			_, _, err = p.PlaceShorter(&req, 0, rnd)
		}
		if !errors.Is(err, errs.NoSpace) {
			t.Fatalf("seed %d: after %d segments: got %v, want no-space", seed, placed, err)
		}
		var free, total uint64
		for i := range p.c.Devices {
			free, total = free+p.c.Devices[i].free(layout.ForData), total+p.c.Devices[i].Total
		}
		if free > total/25 {
			t.Errorf("seed %d: refused with %d MiB of %d free above the reserve", seed, free>>20, total>>20)
		}
	}
}

func TestShorterShardsComeBeforeFewer(t *testing.T) {
	c := cell(6, 1, flat)
	for i := range c.Devices {
		c.Devices[i].Total = 1 << 30
		if i > 2 {
			c.Devices[i].Used = 940 << 20 // above the reserve: some 32 MiB
		}
	}
	req := Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 64 << 20}
	_, g, err := New(c).PlaceShorter(&req, 0, rand.New(rand.NewSource(1)))
	if err != nil || g != req.Geometry || req.ShardLength != 32<<20 {
		t.Errorf("got %v with shards of %d bytes, %v; want 4+2 with 32 MiB", g, req.ShardLength, err)
	}
	req = Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 64 << 20}
	if _, g, err = New(c).PlaceShorter(&req, 48<<20, rand.New(rand.NewSource(1))); err != nil || g.K != 1 || req.ShardLength != 64<<20 {
		t.Errorf("a move of 48 MiB got %v with shards of %d bytes, %v; want 1+2 with 64 MiB", g, req.ShardLength, err)
	}
}

func TestWhatADeviceRefusedIsNotAskedOfItAgain(t *testing.T) {
	c := cell(6, 1, flat)
	for i := range c.Devices {
		c.Devices[i].Total = 1 << 30
	}
	req := Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 64 << 20, Refused: map[layout.DeviceID]layout.ShardOffset{c.Devices[0].ID: 32 << 20}}
	_, g, err := New(c).PlaceShorter(&req, 0, rand.New(rand.NewSource(1)))
	if err != nil || g.K != 4 || req.ShardLength != 16<<20 {
		t.Errorf("one of six refused 32 MiB: got %v with shards of %d bytes, %v; want 4+2 with 16 MiB", g, req.ShardLength, err)
	}
	for i := range c.Devices {
		req.Refused[c.Devices[i].ID] = layout.FirstShardLength
	}
	for _, req.Hopeful = range []bool{false, true} {
		if _, _, err = New(c).PlaceShorter(&req, 0, rand.New(rand.NewSource(1))); !errors.Is(err, errs.NoSpace) {
			t.Errorf("all refused the shortest, hopeful %v: got %v, want no-space", req.Hopeful, err)
		}
	}
}

// TestAHopefulRequestLeavesRoomToTheServers: figures that say that there is none may
// be older than what made some.
func TestAHopefulRequestLeavesRoomToTheServers(t *testing.T) {
	c := cell(6, 1, flat)
	for i := range c.Devices {
		c.Devices[i].Total, c.Devices[i].Other = 1<<30, 1<<30
	}
	req := Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: layout.BlockSize, Purpose: layout.ForNeed}
	if _, _, err := Place(c, req, rand.New(rand.NewSource(1))); !errors.Is(err, errs.NoSpace) {
		t.Fatalf("on full devices: got %v, want no-space", err)
	}
	req.Hopeful = true
	if devices, g, err := Place(c, req, rand.New(rand.NewSource(1))); err != nil || g != req.Geometry || len(devices) != 6 {
		t.Fatalf("hopeful: %v on %v, %v", g, devices, err)
	}
}
