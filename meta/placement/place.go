package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strake/internal/errs"
	"strake/internal/layout"
)

// Source gives random numbers; *rand.Rand and *rand.PCG are ones.
type Source interface{ Uint64() uint64 }

// Request asks for one segment.
type Request struct {
	Geometry    layout.Geometry    // wanted
	ShardLength layout.ShardOffset // bytes on each device
	// AvoidServers get no shard while enough others are left for m+1 shards: a
	// narrower segment is better than one on a server that limps. Where too few are
	// left, the first half of the list is avoided still, and so on: what failed last
	// stands first, and creating a shard on a server that hangs takes seconds.
	AvoidServers []layout.ServerID
	// AvoidDevices get no shard, whatever follows: creating one there failed.
	AvoidDevices []layout.DeviceID
	// Refused devices had no room for a shard of so many bytes, whatever their figures
	// say: they get shorter ones only.
	Refused map[layout.DeviceID]layout.ShardOffset
	Purpose layout.Purpose // how far into the reserve it may go
	// Hopeful requests try devices whatever room they have by their figures: these may
	// be as old as a heartbeat, and chunk servers know better.
	Hopeful bool
	Scatter int // least scatter width; 0: DefaultScatter
}

// Place chooses the devices of one segment, k+m by shard, and its geometry. It
// makes a Placer for one call.
func Place(c Cluster, req Request, rnd Source) ([]layout.DeviceID, layout.Geometry, error) {
	return New(c).Place(req, rnd)
}

// Placer places several segments in one cluster. It counts what it placed, so
// that a batch spreads although the cluster's figures stand still, and keeps
// the copysets it cut.
type Placer struct {
	c       Cluster
	domains map[level]domains
	sets    map[setsKey]copysets
}

type setsKey struct {
	level      level
	n, scatter int
}

// New makes a Placer; it takes a copy of the devices.
func New(c Cluster) *Placer {
	c.Devices = slices.Clone(c.Devices)
	p := &Placer{c: c, domains: make(map[level]domains), sets: make(map[setsKey]copysets)}
	for _, l := range c.levels() {
		p.domains[l] = c.domainsAt(l)
	}
	return p
}

// Place chooses the devices of one segment. The error is Frozen, NoSpace or
// InvalidArgument.
func (p *Placer) Place(req Request, rnd Source) ([]layout.DeviceID, layout.Geometry, error) {
	if !req.Geometry.Valid() || req.ShardLength <= 0 {
		return nil, req.Geometry, errs.New(errs.InvalidArgument, "place segment", "geometry %v with shards of %d bytes", req.Geometry, req.ShardLength)
	}
	if req.Scatter == 0 {
		req.Scatter = DefaultScatter
	}
	for _, avoid := range req.avoidance() {
		if usable := p.sound(&req, p.usable(&req, avoid, true)); usable != nil {
			if members, g, ok := p.choose(&req, usable, rnd); ok {
				return p.settle(members, &req, rnd), g, nil
			}
		}
	}
	return nil, req.Geometry, p.refuse(&req)
}

// PlaceShorter is Place that makes do with shorter shards where long ones find no
// room: half as long each time, down to the first segment's length and never below
// atLeast. So a cell is filled up, and not refused while each device has room for
// less than one long shard. Shorter shards are better than fewer data shards, so
// the widest segment that any length gives is taken, and of these the longest. It
// sets req.ShardLength.
func (p *Placer) PlaceShorter(req *Request, atLeast layout.ShardOffset, rnd Source) ([]layout.DeviceID, layout.Geometry, error) {
	least := max(atLeast, min(layout.ShardOffset(layout.FirstShardLength), req.ShardLength))
	least = (least + layout.BlockSize - 1) / layout.BlockSize * layout.BlockSize
	try, best := *req, *req
	width := -1
	for {
		if w := p.widest(&try); w > width {
			best, width = try, w
		}
		if width == int(req.Geometry.K) || try.ShardLength <= least {
			break
		}
		try.ShardLength = max(try.ShardLength/2/layout.BlockSize*layout.BlockSize, least)
	}
	*req = best
	return p.Place(best, rnd)
}

// Room is how many servers, of a cell of one server how many devices, have room for
// a first segment's shard.
func (p *Placer) Room(purpose layout.Purpose) int {
	levels := p.c.levels()
	usable := p.usable(&Request{ShardLength: layout.FirstShardLength, Purpose: purpose}, nil, true)
	return p.count(levels[len(levels)-1], usable)
}

// spareShare is the part of the cell's free space that one volume's segments may
// hold ahead of need: an eighth.
const spareShare = 8

// Spares tells whether a volume whose segments hold so many bytes may have more ahead
// of need: else a writer that is fast for its cell would hold ten seconds of writing,
// which is all there is, and others would be refused.
func (p *Placer) Spares(held uint64) bool {
	var free uint64
	for i := range p.c.Devices {
		if d := &p.c.Devices[i]; d.takes() {
			free += d.free(layout.ForData)
		}
	}
	return held < free/spareShare
}

// Servers is how many servers there are, of a cell of one server how many devices.
func (p *Placer) Servers() int {
	levels := p.c.levels()
	return p.domains[levels[len(levels)-1]].count
}

// widest is how many data shards a request could get; 0: it would be refused.
func (p *Placer) widest(req *Request) int {
	levels := p.c.levels()
	for _, avoid := range req.avoidance() {
		if usable := p.usable(req, avoid, true); usable != nil {
			if k := min(int(req.Geometry.K), p.count(levels[len(levels)-1], usable)-int(req.Geometry.M)); k >= 1 {
				return k
			}
		}
	}
	return 0
}

// avoidance gives the servers to avoid at first, and those to avoid where that leaves
// too few; nobody in the end.
func (req *Request) avoidance() (lists [][]layout.ServerID) {
	n := len(req.AvoidServers)
	for ; n > 0; n /= 2 {
		lists = append(lists, req.AvoidServers[:n])
	}
	return append(lists, nil)
}

// usable marks the devices that may take a shard of this request, nil when
// there is none.
func (p *Placer) usable(req *Request, avoid []layout.ServerID, space bool) []bool {
	usable, any := make([]bool, len(p.c.Devices)), false
	for i := range p.c.Devices {
		d := &p.c.Devices[i]
		usable[i] = d.takes() && !slices.Contains(req.AvoidDevices, d.ID) &&
			!slices.Contains(avoid, d.Server) && !(space && req.tooLong(d))
		any = any || usable[i]
	}
	if !any {
		return nil
	}
	return usable
}

// tooLong tells whether the request's shards are longer than what a device has room for.
func (req *Request) tooLong(d *Device) bool {
	if refused, ok := req.Refused[d.ID]; ok && req.ShardLength >= refused {
		return true
	}
	return !req.Hopeful && d.free(req.Purpose) < uint64(req.ShardLength)
}

// sound takes those that limp out of the usable devices, unless the segment would
// get narrower, or its shards nearer to each other, for want of them.
func (p *Placer) sound(req *Request, usable []bool) []bool {
	fit := slices.Clone(usable)
	for i := range fit {
		fit[i] = fit[i] && !p.c.Devices[i].limps()
	}
	for _, l := range p.c.levels() {
		if n := req.Geometry.Shards(); p.count(l, usable) >= n {
			if p.count(l, fit) >= n {
				return fit
			}
			return usable
		}
	}
	return usable // too few for the whole width as it is
}

// choose looks for the widest segment first, and for each width for the widest
// level of domains.
func (p *Placer) choose(req *Request, usable []bool, rnd Source) ([]int, layout.Geometry, bool) {
	for g := req.Geometry; g.K >= 1; g.K-- {
		for _, l := range p.c.levels() {
			if p.count(l, usable) < g.Shards() {
				continue
			}
			if members := p.pick(l, g.Shards(), req, usable, rnd); members != nil {
				return members, g, true
			}
		}
	}
	return nil, req.Geometry, false
}

// count is how many domains of a level have a usable device.
func (p *Placer) count(l level, usable []bool) (n int) {
	at := p.domains[l]
	seen := make([]bool, at.count)
	for i, ok := range usable {
		if ok && !seen[at.of[i]] {
			seen[at.of[i]] = true
			n++
		}
	}
	return n
}

// draws is how many groups are drawn for a segment; the emptiest gets it.
// Drawing one alone would leave the spread of chance in the fill of devices.
const draws = 4

// pick draws groups, their unusable members replaced by their neighbours, with
// a chance in proportion to their least member's weight, and takes the one
// whose fullest member is the emptiest.
func (p *Placer) pick(l level, n int, req *Request, usable []bool, rnd Source) (best []int) {
	sets := p.copysets(l, n, req.Scatter)
	whole := make([][]int, 0, len(sets.groups))
	sums := make([]uint64, 0, len(sets.groups))
	var sum uint64
	for _, g := range sets.groups {
		members := p.repair(g, sets.orders[g.order], p.domains[l].of, n, usable)
		if members == nil {
			continue
		}
		sum += p.least(members, func(d *Device) uint64 { return d.weight(req.Purpose) })
		whole, sums = append(whole, members), append(sums, sum)
	}
	if sum == 0 {
		return nil
	}
	most := uint64(0)
	for range draws {
		i, _ := slices.BinarySearch(sums, rnd.Uint64()%sum+1)
		if room := p.leastRoom(whole[i], req); best == nil || room > most {
			best, most = whole[i], room
		}
	}
	if most < evenBelow {
		return p.even(l, n, req, usable, best, most)
	}
	return best
}

const (
	// evenBelow is the room of a device, by Device.room, below which a cell is
	// filled evenly: once too few devices have room for a segment, what the others
	// have is of no use.
	evenBelow = 1_000_000_000 / 2
	// uneven is the least difference in room for which the copysets are left then.
	uneven = 1_000_000_000 / 100
)

// even gives the n devices of distinct domains with the most room, when one of
// them has much more than the fullest of a group; else the group.
func (p *Placer) even(l level, n int, req *Request, usable []bool, group []int, least uint64) []int {
	var order []int
	for i, ok := range usable {
		if ok {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(p.c.Devices[b].room(req.Purpose), p.c.Devices[a].room(req.Purpose))
	})
	if p.c.Devices[order[0]].room(req.Purpose) <= least+max(uneven, least/4) {
		return group
	}
	members, _ := take(nil, order, p.domains[l].of, n)
	return members
}

func (p *Placer) leastRoom(members []int, req *Request) uint64 {
	return p.least(members, func(d *Device) uint64 { return d.room(req.Purpose) })
}

// least is the smallest figure of a group's members.
func (p *Placer) least(members []int, figure func(*Device) uint64) uint64 {
	least := ^uint64(0)
	for _, m := range members {
		least = min(least, figure(&p.c.Devices[m]))
	}
	return least
}

func (p *Placer) copysets(l level, n, scatter int) copysets {
	key := setsKey{l, n, scatter}
	sets, ok := p.sets[key]
	if !ok {
		sets = cut(&p.c, p.domains[l], n, scatter)
		p.sets[key] = sets
	}
	return sets
}

// repair gives the group with its unusable members replaced by the next usable
// devices of the permutation, nil when there are too few.
func (p *Placer) repair(g group, order, of []int, n int, usable []bool) []int {
	unusable := func(m int) bool { return !usable[m] }
	if !slices.ContainsFunc(g.members, unusable) {
		return g.members
	}
	fit := slices.DeleteFunc(slices.Clone(g.members), unusable)
	from := slices.Index(order, g.members[0])
	next := slices.DeleteFunc(slices.Concat(order[from:], order[:from]), unusable)
	if fit, _ = take(fit, next, of, n); len(fit) < n {
		return nil
	}
	return fit
}

// settle counts the segment and gives its devices in random order, so that
// parity spreads over the members.
func (p *Placer) settle(members []int, req *Request, rnd Source) []layout.DeviceID {
	out := make([]layout.DeviceID, len(members))
	for i, m := range members {
		p.c.Devices[m].Reserved += uint64(req.ShardLength)
		out[i] = p.c.Devices[m].ID
	}
	for i := len(out) - 1; i > 0; i-- {
		j := rnd.Uint64() % uint64(i+1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// refuse tells what is missing: servers, or space on which devices.
func (p *Placer) refuse(req *Request) error {
	op, need := "place segment", int(req.Geometry.M)+1
	levels := p.c.levels()
	last := levels[len(levels)-1]
	healthy := p.usable(req, nil, false)
	if n := p.count(last, healthy); n < need {
		return errs.New(errs.Frozen, op, "%d %s can take shards, %d are needed for m=%d (%s)", n, last, need, req.Geometry.M, p.unfit()).
			WithHint("bring servers back or add some; writing goes on by itself then")
	}
	var full []string
	for i, ok := range healthy {
		if d := &p.c.Devices[i]; ok && req.tooLong(d) {
			full = append(full, fmt.Sprintf("device %d on server %d has %d bytes", d.ID, d.Server, d.free(req.Purpose)))
		}
	}
	return errs.New(errs.NoSpace, op, "no room for shards of %d bytes on %d %s: %s", req.ShardLength, need, last, shorten(full)).
		WithHint("delete data, or add devices")
}

// unfit names the devices that can't take shards.
func (p *Placer) unfit() string {
	var names []string
	for i := range p.c.Devices {
		switch d := &p.c.Devices[i]; {
		case !d.Up:
			names = append(names, fmt.Sprintf("server %d is down", d.Server))
		case !d.takes():
			names = append(names, fmt.Sprintf("device %d is %v", d.ID, d.State))
		}
	}
	if len(names) == 0 {
		return "no more are registered"
	}
	return shorten(slices.Compact(names))
}

func shorten(names []string) string {
	const most = 4
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
