package reconcile

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"strake/internal/layout"
	"strake/meta/placement"
	"strake/meta/state"
)

const (
	// BalanceGoal is how far, in thousandths of a device, the fullest and the
	// emptiest may be apart when a rebalance is done.
	BalanceGoal = 50
	// balanceMoves bounds the moves under way from one device.
	balanceMoves = 2
)

// balancing is the rebalance under way: what devices hold by their last
// heartbeats and what was moved since, and where the look for segments goes on.
type balancing struct {
	holds  map[layout.DeviceID]uint64 // bytes stored
	moving map[layout.DeviceID]int64  // bytes of moves under way: to it, less those from it
	leaves map[layout.DeviceID]int    // moves under way from it
	after  map[layout.DeviceID]layout.SegmentID
	vain   map[layout.DeviceID]bool // gone through as a whole, and nothing could go
}

func newBalancing() balancing {
	return balancing{map[layout.DeviceID]uint64{}, map[layout.DeviceID]int64{}, map[layout.DeviceID]int{}, map[layout.DeviceID]layout.SegmentID{}, map[layout.DeviceID]bool{}}
}

// Holds notes how many bytes a device says that it stores.
func (p *Planner) Holds(id layout.DeviceID, bytes uint64) { p.balance.holds[id] = bytes }

// Moves counts the moves of a rebalance under way.
func (p *Planner) Moves() (n int) {
	for _, moves := range p.balance.leaves {
		n += moves
	}
	return n
}

// Moving is how many bytes these may hold.
func (p *Planner) Moving() (bytes uint64) {
	for _, n := range p.balance.moving {
		bytes += uint64(max(0, n))
	}
	return bytes
}

// Fill is how full one device is.
type Fill struct {
	Device layout.DeviceID
	Server layout.ServerID
	Total  uint64 // bytes, above 0
	Holds  int64  // bytes stored, as if all moves under way were done
}

// share is the fill in thousandths, rounded down.
func (f Fill) share() int64 { return f.Holds / max(1, int64(f.Total)/1000) }

// Fills lists the devices that a rebalance evens out, the fullest first: those
// that take shards and whose figures are known.
func (p *Planner) Fills(view *state.View) (list []Fill) {
	for _, d := range view.Devices() {
		server, _ := view.Server(d.Server)
		holds, known := p.balance.holds[d.ID]
		if known && d.State == state.DeviceUp && server.Up && d.Total > 0 {
			list = append(list, Fill{Device: d.ID, Server: d.Server, Total: d.Total, Holds: max(0, int64(holds)+p.balance.moving[d.ID])})
		}
	}
	slices.SortStableFunc(list, func(a, b Fill) int { return cmp.Compare(b.share(), a.share()) })
	return list
}

// Balance is what a rebalance has to do.
type Balance struct {
	Spread int64  // between the fullest device and the emptiest, in thousandths
	Mean   int64  // of all together, in thousandths
	Bytes  uint64 // that must move at least
}

// BalanceOf judges how even devices are, given the fullest first.
func BalanceOf(fills []Fill) (b Balance) {
	if len(fills) == 0 {
		return b
	}
	b.Spread = fills[0].share() - fills[len(fills)-1].share()
	var holds, total int64
	for _, f := range fills {
		holds, total = holds+f.Holds, total+int64(f.Total)
	}
	b.Mean = holds / max(1, total/1000)
	if b.Spread <= BalanceGoal {
		return b
	}
	var over, under int64
	for _, f := range fills {
		over += max(0, f.share()-b.Mean-BalanceGoal/2) * (int64(f.Total) / 1000)
		under += max(0, b.Mean-BalanceGoal/2-f.share()) * (int64(f.Total) / 1000)
	}
	b.Bytes = uint64(max(over, under))
	return b
}

// rebalance moves sealed segments from full devices to empty ones while that is
// wished, and nothing is lost or drained. It ends itself when devices are even, or
// when no segment of a full device can go anywhere.
func (pl *plan) rebalance() {
	b, began := &pl.p.balance, pl.view.Cell().Rebalancing
	if began == 0 {
		clear(b.after)
		clear(b.vain)
		return
	}
	if len(pl.p.rebuilds.queued) > 0 || pl.p.rebuilds.last.Shards+pl.p.rebuilds.last.Moving > 0 {
		return
	}
	fills := pl.p.Fills(pl.view)
	if len(fills) < 2 {
		return // a new leader has not heard them yet
	}
	goal := BalanceOf(fills)
	if goal.Spread <= BalanceGoal {
		if len(b.leaves) == 0 {
			pl.add(EndRebalance{Began: began, Why: "devices are even"})
		}
		return
	}
	mover := &mover{builder: builder{pl: pl}, fills: fills, goal: goal, scan: pl.p.limits.Scan}
	open := false
	for _, from := range fills {
		if from.share() > goal.Mean && !b.vain[from.Device] {
			mover.empty(from)
			open = open || !b.vain[from.Device]
		}
	}
	if !open && len(b.leaves) == 0 {
		pl.add(EndRebalance{Began: began, Why: "no other segment can move: its failure domains leave no choice, or it is larger than the gap"})
	}
}

// mover makes the moves of one plan.
type mover struct {
	builder
	fills []Fill // by the plan's begin
	goal  Balance
	scan  int  // records that may be read yet
	waits bool // a segment waits after a failed move
}

// empty hands out moves from a device, going on in its segments where the last
// plan ended.
func (m *mover) empty(from Fill) {
	b := &m.pl.p.balance
	for m.scan > 0 && b.leaves[from.Device] < balanceMoves && !m.pl.full(kindRebuild) {
		page, more := m.pl.view.SegmentsOnDevice(from.Device, b.after[from.Device], min(m.scan, 64))
		m.scan -= len(page) + 1
		for i := range page {
			b.after[from.Device] = page[i].ID
			if m.move(&page[i], from.Device) {
				clear(b.vain)
				if b.leaves[from.Device] >= balanceMoves {
					return
				}
			}
		}
		if !more {
			b.vain[from.Device] = b.leaves[from.Device] == 0 && !m.waits
			b.after[from.Device] = 0
			return
		}
	}
}

// move hands out the move of a segment's shard from a device, to one that stays
// emptier than that.
func (m *mover) move(s *state.Segment, from layout.DeviceID) bool {
	pl := m.pl
	j, needs := pl.judge(s)
	if needs || s.State != state.Finalized || !pl.view.Needed(s) || j.spare < int(s.Geometry.M) || pl.full(kindRebuild) {
		return false
	}
	if pl.waits(key{kindRebuild, uint64(s.ID)}) {
		m.waits = true
		return false
	}
	at := layout.ShardIndex(slices.IndexFunc(s.Placements, func(p state.Placement) bool { return p.Device == from }))
	length := int64(s.Seal.Shards[at].Length)
	t := Rebuild{Segment: s.ID, Shard: at, Old: s.Placements[at], Spare: j.spare, Move: true, Balance: true, Bytes: length}
	var ok bool
	if t.Device, ok = m.target(s, &t); !ok {
		return false
	}
	d, _ := pl.view.Device(t.Device)
	if t.Server = d.Server; pl.p.targets[t.Server] >= pl.p.limits.PerTarget {
		return false
	}
	t.Sources = pl.sources(s, &j, &t)
	pl.p.targets[t.Server]++
	pl.p.balance.begin(&t)
	pl.add(t)
	return true
}

// target chooses where a shard goes: below the mean, emptier than its device even
// afterwards, and no nearer to the segment's other shards than it is now.
func (m *mover) target(s *state.Segment, t *Rebuild) (layout.DeviceID, bool) {
	fills := m.pl.p.Fills(m.pl.view)
	at := slices.IndexFunc(fills, func(f Fill) bool { return f.Device == t.Old.Device })
	from := fills[at]
	after := from
	after.Holds -= t.Bytes
	below := m.goal.Mean
	if from.share() <= m.goal.Mean+BalanceGoal/2 {
		below -= BalanceGoal / 2 // this device is full enough to give, but only to those that lack much
	}
	req := m.substitution(s, t)
	req.Keep = t.Old.Device
	for _, f := range fills {
		filled := f
		filled.Holds += t.Bytes
		if f.share() >= below || filled.share() > after.share() {
			req.AvoidDevices = append(req.AvoidDevices, f.Device)
		}
	}
	for _, d := range m.pl.view.Devices() {
		if _, known := m.pl.p.balance.holds[d.ID]; !known {
			req.AvoidDevices = append(req.AvoidDevices, d.ID)
		}
	}
	device, err := m.placerNow().Substitute(req, rand.NewPCG(uint64(t.Segment), uint64(t.Shard)<<32+uint64(m.pl.failures(*t))))
	return device, err == nil
}

// placerNow is the plan's placer.
func (b *builder) placerNow() *placement.Placer {
	if b.placer == nil {
		up := func(id layout.ServerID) bool { return !b.pl.silent(id) }
		b.placer = placement.New(placement.Of(b.pl.view, up, nil))
	}
	return b.placer
}

// begin counts a move that is handed out.
func (b *balancing) begin(t *Rebuild) {
	b.moving[t.Device] += t.Bytes
	b.moving[t.Old.Device] -= t.Bytes
	b.leaves[t.Old.Device]++
}

// done takes that back; what really moved counts until the next heartbeats say so.
func (b *balancing) done(t *Rebuild, ok bool) {
	for device, bytes := range map[layout.DeviceID]int64{t.Device: t.Bytes, t.Old.Device: -t.Bytes} {
		if ok {
			b.holds[device] = uint64(max(0, int64(b.holds[device])+bytes))
		}
		if b.moving[device] -= bytes; b.moving[device] == 0 {
			delete(b.moving, device)
		}
	}
	clear(b.vain) // a target may have a hand free now
	if b.leaves[t.Old.Device]--; b.leaves[t.Old.Device] == 0 {
		delete(b.leaves, t.Old.Device)
	}
}
