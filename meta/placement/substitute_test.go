package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

func clusterOf(servers, racks int) Cluster {
	c := Cluster{Single: servers == 1}
	for i := range servers {
		for d := range 2 {
			c.Devices = append(c.Devices, Device{ID: layout.DeviceID(2*i + d + 1), Server: layout.ServerID(i + 1), Up: true, Total: 1 << 30,
				Domain: fmt.Sprintf("z/r%d/h%d", i%racks, i)})
		}
	}
	return c
}

func TestASubstituteKeepsShardsApart(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := clusterOf(3+rnd.IntN(8), 1+rnd.IntN(4))
		for i := range c.Devices {
			c.Devices[i].Up = rnd.IntN(8) > 0
		}
		g := layout.Geometry{K: 2, M: 1}
		placed, _, err := New(clusterOf(len(c.Devices)/2, 3)).Place(Request{Geometry: g, ShardLength: 4096}, rnd)
		if err != nil {
			t.Fatal(err)
		}
		lost := rnd.IntN(len(placed))
		others := append(append([]layout.DeviceID{}, placed[:lost]...), placed[lost+1:]...)
		got, err := New(c).Substitute(Substitution{Others: others, Length: 4096, AvoidDevices: placed[lost : lost+1]}, rnd)
		if err != nil {
			if errs.KindOf(err) != errs.Frozen {
				t.Fatal(err)
			}
			continue
		}
		server := func(d layout.DeviceID) layout.DeviceID { return (d - 1) / 2 }
		for _, o := range append(others, placed[lost]) {
			if o == got || o != placed[lost] && server(o) == server(got) {
				t.Fatalf("seed %d: device %d beside %v for the shard of device %d", seed, got, others, placed[lost])
			}
		}
		if d := c.Devices[got-1]; !d.Up || d.State != state.DeviceUp {
			t.Fatalf("seed %d: chose %+v", seed, d)
		}
	}
}

func TestASubstituteGoesWhereLeastIsGoingOn(t *testing.T) {
	load := map[layout.ServerID]int{}
	p, rnd := New(clusterOf(8, 8)), rand.NewPCG(1, 1)
	for range 60 {
		d, err := p.Substitute(Substitution{Others: []layout.DeviceID{1, 3}, Length: 4096, Load: func(s layout.ServerID) int { return load[s] }}, rnd)
		if err != nil {
			t.Fatal(err)
		}
		load[layout.ServerID((d+1)/2)]++
	}
	for s := layout.ServerID(3); s <= 8; s++ {
		if load[s] < 7 || load[s] > 13 {
			t.Errorf("60 shards on six servers: %v", load)
		}
	}
}

// TestAShardThatMovesComesNoNearerToTheOthers: with a rack for each shard, a move
// that only the others' racks have room for is refused; without Keep it is made.
func TestAShardThatMovesComesNoNearerToTheOthers(t *testing.T) {
	c := clusterOf(6, 3) // servers 1 and 4 in rack 0, 2 and 5 in rack 1, 3 and 6 in rack 2
	req := Substitution{Others: []layout.DeviceID{1, 3}, Length: 4096, Keep: 5, AvoidDevices: []layout.DeviceID{5, 6, 11, 12}}
	if got, err := New(c).Substitute(req, rand.NewPCG(1, 1)); errs.KindOf(err) != errs.Frozen {
		t.Errorf("got device %d, %v", got, err)
	}
	req.AvoidDevices = []layout.DeviceID{5, 6}
	if got, err := New(c).Substitute(req, rand.NewPCG(1, 1)); err != nil || got != 11 && got != 12 {
		t.Errorf("got device %d, %v; rack 2 has room on 11 and 12", got, err)
	}
	req.AvoidDevices, req.Keep = []layout.DeviceID{5, 6, 11, 12}, 0
	if got, err := New(c).Substitute(req, rand.NewPCG(1, 1)); err != nil || got < 7 {
		t.Errorf("a lost shard: got device %d, %v", got, err)
	}
}
