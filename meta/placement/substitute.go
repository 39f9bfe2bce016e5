package placement

import (
	"slices"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Substitution asks for a device for one shard of a segment that exists.
type Substitution struct {
	Others []layout.DeviceID  // where the segment's other shards are
	Length layout.ShardOffset // bytes that the shard may take
	// AvoidServers and AvoidDevices don't get it, whatever follows.
	AvoidServers []layout.ServerID
	AvoidDevices []layout.DeviceID
	// Keep is where the shard is, when it only moves: the others stay apart from it
	// at the widest level at which they are now. 0: it is lost.
	Keep layout.DeviceID
	// Load is how much work a server has already; of several devices the one on
	// the least loaded server gets the shard. Nil: all alike.
	Load func(layout.ServerID) int
}

// Substitute chooses a device that keeps the segment in distinct failure
// domains: of the widest level in which the other shards are apart and a device
// is left. Rebuild may use half of the reserve. A device that limps gets the shard
// only where no other can. The error is Frozen or NoSpace.
func (p *Placer) Substitute(req Substitution, rnd Source) (layout.DeviceID, error) {
	usable := make([]int, 0, len(p.c.Devices))
	full := 0
	for i := range p.c.Devices {
		switch d := &p.c.Devices[i]; {
		case !d.takes() || slices.Contains(req.AvoidServers, d.Server) || slices.Contains(req.AvoidDevices, d.ID) || slices.Contains(req.Others, d.ID):
		case d.free(layout.ForUpkeep) < uint64(req.Length):
			full++
		default:
			usable = append(usable, i)
		}
	}
	for _, l := range p.c.levels() {
		if fit := p.preferred(p.apart(l, usable, req.Others)); len(fit) > 0 {
			i := p.lightest(fit, &req, rnd)
			p.c.Devices[i].Reserved += uint64(req.Length)
			return p.c.Devices[i].ID, nil
		}
		if req.Keep != 0 && p.apartAt(l, append(slices.Clone(req.Others), req.Keep)) {
			break // a narrower level would bring shards nearer to each other
		}
	}
	if full > 0 {
		return 0, errs.New(errs.NoSpace, "place shard", "no room for %d bytes on %d devices", req.Length, full).WithHint("delete data, or add devices")
	}
	return 0, errs.New(errs.Frozen, "place shard", "no device is left in a failure domain of its own (%s)", p.unfit()).
		WithHint("bring servers back or add some")
}

// preferred leaves out those that limp, unless all do.
func (p *Placer) preferred(fit []int) []int {
	limps := func(i int) bool { return p.c.Devices[i].limps() }
	if sound := slices.DeleteFunc(slices.Clone(fit), limps); len(sound) > 0 {
		return sound
	}
	return fit
}

// apart gives the devices whose domain at a level holds none of others, nil when
// others share one there themselves.
func (p *Placer) apart(l level, usable []int, others []layout.DeviceID) (fit []int) {
	at := p.domains[l]
	taken := make(map[int]bool, len(others))
	for i := range p.c.Devices {
		if !slices.Contains(others, p.c.Devices[i].ID) {
			continue
		}
		if taken[at.of[i]] {
			return nil
		}
		taken[at.of[i]] = true
	}
	for _, i := range usable {
		if !taken[at.of[i]] {
			fit = append(fit, i)
		}
	}
	return fit
}

// apartAt tells whether devices are in distinct domains of a level.
func (p *Placer) apartAt(l level, ids []layout.DeviceID) bool {
	taken := make(map[int]bool, len(ids))
	for i := range p.c.Devices {
		if !slices.Contains(ids, p.c.Devices[i].ID) {
			continue
		}
		if taken[p.domains[l].of[i]] {
			return false
		}
		taken[p.domains[l].of[i]] = true
	}
	return true
}

// lightest draws a few devices with a chance in proportion to their weight, and
// takes the one with the least load, then the most room.
func (p *Placer) lightest(fit []int, req *Substitution, rnd Source) (best int) {
	var sum uint64
	sums := make([]uint64, len(fit))
	for n, i := range fit {
		sum += p.c.Devices[i].weight(layout.ForUpkeep)
		sums[n] = sum
	}
	load := func(i int) int {
		if req.Load == nil {
			return 0
		}
		return req.Load(p.c.Devices[i].Server)
	}
	best = -1
	for range draws {
		n, _ := slices.BinarySearch(sums, rnd.Uint64()%sum+1)
		i := fit[n]
		if best < 0 || load(i) < load(best) || load(i) == load(best) && p.c.Devices[i].room(layout.ForUpkeep) > p.c.Devices[best].room(layout.ForUpkeep) {
			best = i
		}
	}
	return best
}
