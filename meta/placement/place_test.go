package placement

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

// cell makes a cluster of n servers with the given devices each.
func cell(servers, devices int, domain func(s int) string) Cluster {
	c := Cluster{Single: servers == 1}
	for s := range servers {
		for range devices {
			c.Devices = append(c.Devices, Device{ID: layout.DeviceID(len(c.Devices) + 1), Server: layout.ServerID(s + 1), Domain: domain(s), Total: 1 << 40, Up: true})
		}
	}
	return c
}

func flat(s int) string { return fmt.Sprintf("z/r/h%d", s) }

// random makes any cluster: some devices down, full, busy or draining.
func random(rnd *rand.Rand) Cluster {
	zones, racks := 1+rnd.Intn(4), 1+rnd.Intn(3)
	c := cell(1+rnd.Intn(24), 1+rnd.Intn(3), func(s int) string {
		if s%7 == 6 {
			return ""
		}
		return fmt.Sprintf("z%d/r%d/h%d", s%zones, s%racks, s)
	})
	down := rnd.Intn(len(c.Devices) + 1)
	for i := range c.Devices {
		d := &c.Devices[i]
		d.Up = int(d.Server) != down
		d.Used = uint64(rnd.Int63n(int64(d.Total)))
		d.Busy = uint16(rnd.Intn(1001))
		if rnd.Intn(8) == 0 {
			d.State = state.DeviceState(rnd.Intn(4))
		}
		if rnd.Intn(8) == 0 {
			d.Used = d.Total
		}
	}
	return c
}

func request(rnd *rand.Rand) Request {
	req := Request{Geometry: layout.Geometry{K: uint8(1 + rnd.Intn(8)), M: uint8(1 + rnd.Intn(3))}, ShardLength: 64 << 20, Purpose: layout.Purpose(rnd.Intn(3))}
	if rnd.Intn(2) == 0 {
		req.AvoidServers = []layout.ServerID{layout.ServerID(1 + rnd.Intn(10))}
		req.AvoidDevices = []layout.DeviceID{layout.DeviceID(1 + rnd.Intn(10))}
	}
	return req
}

// servers counts the servers that could take a shard.
func fit(c Cluster, req Request, avoid bool) int {
	seen := map[domain]bool{}
	last := levelServer
	if c.Single {
		last = levelDevice
	}
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.takes() && d.free(req.Purpose) >= uint64(req.ShardLength) && !slices.Contains(req.AvoidDevices, d.ID) && !(avoid && slices.Contains(req.AvoidServers, d.Server)) {
			seen[d.domain(last)] = true
		}
	}
	return len(seen)
}

func TestEverySegmentKeepsTheRulesInAnyCluster(t *testing.T) {
	refused := 0
	for seed := range int64(800) {
		rnd := rand.New(rand.NewSource(seed))
		c, req := random(rnd), request(rnd)
		devices, g, err := Place(c, req, rnd)
		want, avoided := req.Geometry.Shards(), true
		n := fit(c, req, true)
		if n < int(req.Geometry.M)+1 {
			n, avoided = fit(c, req, false), false
		}
		if n < int(req.Geometry.M)+1 {
			refused++
			if !errors.Is(err, errs.Frozen) && !errors.Is(err, errs.NoSpace) || errs.HintOf(err) == "" {
				t.Fatalf("seed %d: %d servers fit %v: %v", seed, n, req.Geometry, err)
			}
			continue
		}
		if err != nil || g.M != req.Geometry.M || g.Shards() != min(want, n) || len(devices) != g.Shards() {
			t.Fatalf("seed %d: %d servers fit %v: got %v on %v, %v", seed, n, req.Geometry, g, devices, err)
		}
		checkMembers(t, seed, c, req, devices, avoided)
		again, _, _ := Place(c, req, rand.New(rand.NewSource(9)))
		twice, _, _ := Place(c, req, rand.New(rand.NewSource(9)))
		if !reflect.DeepEqual(again, twice) {
			t.Fatalf("seed %d: equal inputs gave %v and %v", seed, again, twice)
		}
	}
	if refused < 20 || refused > 400 {
		t.Errorf("%d of 800 requests were refused: the clusters test little", refused)
	}
}

func checkMembers(t *testing.T, seed int64, c Cluster, req Request, devices []layout.DeviceID, avoided bool) {
	t.Helper()
	widest := true
	for _, l := range c.levels() {
		all, got := map[domain]bool{}, map[domain]bool{}
		for i := range c.Devices {
			d := &c.Devices[i]
			usable := d.takes() && d.free(req.Purpose) >= uint64(req.ShardLength) && !slices.Contains(req.AvoidDevices, d.ID) && !(avoided && slices.Contains(req.AvoidServers, d.Server))
			if usable {
				all[d.domain(l)] = true
			}
			if slices.Contains(devices, d.ID) {
				if !usable {
					t.Fatalf("seed %d: device %+v is not fit", seed, *d)
				}
				got[d.domain(l)] = true
			}
		}
		if widest && len(all) >= len(devices) {
			widest = false
			if len(got) != len(devices) {
				t.Fatalf("seed %d: %v share %v although there are %d", seed, devices, l, len(all))
			}
		}
	}
	if widest {
		t.Fatalf("seed %d: no level holds %v apart", seed, devices)
	}
}

func TestADeviceSharesSegmentsWithABoundedSet(t *testing.T) {
	for _, c := range []struct {
		servers, devices int
		g                layout.Geometry
	}{{100, 1, layout.Geometry{K: 4, M: 2}}, {60, 4, layout.Geometry{K: 8, M: 3}}, {301, 1, layout.Geometry{K: 2, M: 1}}} {
		p, rnd := New(cell(c.servers, c.devices, flat)), rand.New(rand.NewSource(1))
		with := map[layout.DeviceID]map[layout.DeviceID]bool{}
		for range 6000 {
			devices, _, err := p.Place(Request{Geometry: c.g, ShardLength: 1 << 20}, rnd)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range devices {
				if with[d] == nil {
					with[d] = map[layout.DeviceID]bool{}
				}
				for _, o := range devices {
					with[d][o] = o != d
				}
			}
		}
		least, most := 1<<30, 0
		for _, o := range with {
			least, most = min(least, len(o)-1), max(most, len(o)-1)
		}
		t.Logf("%d devices, %v: scatter %d to %d", c.servers*c.devices, c.g, least, most)
		if most > ScatterBound(c.g, 0) || least < DefaultScatter/2 || len(with) != c.servers*c.devices {
			t.Errorf("%d devices of %d used, %v: scatter %d to %d, want %d to %d", len(with), c.servers*c.devices, c.g, least, most, DefaultScatter/2, ScatterBound(c.g, 0))
		}
	}
}

// TestFewSetsOfDevicesCanLoseData compares with free choice: of the sets of
// three devices (m+1 of 4+2) that could fail at once, few hold a segment.
func TestFewSetsOfDevicesCanLoseData(t *testing.T) {
	const n, segments = 60, 5000
	p, rnd := New(cell(n, 1, flat)), rand.New(rand.NewSource(1))
	triples := func(place func() []layout.DeviceID) int {
		seen := map[[3]layout.DeviceID]bool{}
		for range segments {
			d := place()
			slices.Sort(d)
			for a := range d {
				for b := range a {
					for c := range b {
						seen[[3]layout.DeviceID{d[c], d[b], d[a]}] = true
					}
				}
			}
		}
		return len(seen)
	}
	copysets := triples(func() []layout.DeviceID {
		d, _, err := p.Place(Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 1 << 20}, rnd)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
	free := triples(func() (d []layout.DeviceID) {
		for _, i := range rnd.Perm(n)[:6] {
			d = append(d, layout.DeviceID(i+1))
		}
		return d
	})
	t.Logf("%d segments on %d devices: %d of %d triples lose data, with free choice %d", segments, n, copysets, n*(n-1)*(n-2)/6, free)
	if copysets*20 > free {
		t.Errorf("%d triples lose data, with free choice %d: less than a twentieth was expected", copysets, free)
	}
}

func TestDevicesFillEvenly(t *testing.T) {
	for _, c := range []struct {
		name    string
		cluster Cluster
		most    float64 // fullest over mean
	}{
		{"equal devices", cell(20, 2, flat), 1.08},
		{"a leftover in each permutation", cell(31, 1, flat), 1.10},
		{"devices of two sizes", mixed(), 1.5}, // groups mix the sizes, so the small ones fill first
	} {
		p, rnd := New(c.cluster), rand.New(rand.NewSource(1))
		var total uint64
		for _, d := range c.cluster.Devices {
			total += d.Total
		}
		for placed := uint64(0); placed < total*6/10; placed += 6 << 30 {
			if _, _, err := p.Place(Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 1 << 30}, rnd); err != nil {
				t.Fatal(err)
			}
		}
		fullest := 0.0
		for _, d := range p.c.Devices {
			fullest = max(fullest, float64(d.Reserved)/float64(d.Total)/0.6)
		}
		t.Logf("%s: the fullest is at %.3f of the mean", c.name, fullest)
		if fullest > c.most {
			t.Errorf("%s: the fullest is at %.3f of the mean, at most %.2f was expected", c.name, fullest, c.most)
		}
	}
}

func mixed() Cluster {
	c := cell(24, 1, flat)
	for i := range c.Devices {
		if i%2 == 0 {
			c.Devices[i].Total /= 2
		}
	}
	return c
}

func TestAnOutageMovesNoOtherGroup(t *testing.T) {
	c := cell(48, 1, flat)
	before := cut(&c, c.domainsAt(levelServer), 6, DefaultScatter)
	c.Devices[7].Up = false
	if after := cut(&c, c.domainsAt(levelServer), 6, DefaultScatter); !reflect.DeepEqual(before, after) {
		t.Error("a server that went down changed the copysets")
	}
}

func TestShardLengthDoublesUpToTheCells(t *testing.T) {
	for _, c := range []struct {
		segments      uint64
		cell, atLeast layout.ShardOffset
		want          layout.ShardOffset
	}{
		{0, 64 << 20, 0, 4 << 20}, {1, 64 << 20, 0, 8 << 20}, {4, 64 << 20, 0, 64 << 20}, {1 << 40, 64 << 20, 0, 64 << 20},
		{0, 1 << 20, 0, 1 << 20}, {3, 48 << 20, 0, 32 << 20}, {9, 48 << 20, 0, 48 << 20},
		{0, 64 << 20, 5<<20 + 1, 5<<20 + 4096}, {9, 1 << 30, 2 << 30, 1 << 30},
	} {
		if got := ShardLength(c.segments, c.cell, c.atLeast); got != c.want {
			t.Errorf("%d segments, cell %d, at least %d: got %d, want %d", c.segments, c.cell, c.atLeast, got, c.want)
		}
	}
}

func BenchmarkPlaceInAThousandServers(b *testing.B) {
	p, rnd := New(cell(1000, 1, flat)), rand.New(rand.NewSource(1))
	for b.Loop() {
		if _, _, err := p.Place(Request{Geometry: layout.Geometry{K: 8, M: 3}, ShardLength: 1 << 20}, rnd); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWhereTooFewAreLeftWhatFailedLastIsAvoidedStill: of seven servers five failed
// lately, and the first of the list hangs.
func TestWhereTooFewAreLeftWhatFailedLastIsAvoidedStill(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	avoid := []layout.ServerID{7, 1, 2, 4, 5}
	for range 100 {
		req := Request{Geometry: layout.Geometry{K: 4, M: 2}, ShardLength: 4 << 20, AvoidServers: avoid}
		devices, g, err := New(cell(7, 1, flat)).PlaceShorter(&req, 4096, rnd)
		if err != nil || g != (layout.Geometry{K: 3, M: 2}) || slices.Contains(devices, 7) || slices.Contains(devices, 1) {
			t.Fatalf("%v on %v (%v), want 3+2 on neither 7 nor 1", g, devices, err)
		}
	}
}
