package reconcile

import (
	"math/rand/v2"

	"strake/internal/layout"
	"strake/meta/placement"
	"strake/meta/state"
)

const (
	// dangers are the degrees of danger of a segment that waits for rebuild: by
	// the shards it can still lose, and last those that only move.
	dangers = layout.MaxParity + 2
	// mostQueued bounds the segments that wait in memory; the others are found
	// again when the listings are gone through anew.
	mostQueued = 1 << 16
	// misses bounds the segments of one degree that a plan tries in vain.
	misses = 64
)

// rebuilds is what waits for rebuild: found by going through the segments with
// lost shards, again and again, and handed out by danger.
type rebuilds struct {
	queue  [dangers][]layout.SegmentID // first come first served
	queued map[layout.SegmentID]bool

	// Where the next plan goes on: in the damaged segments while device is 0,
	// then in those on each device that is dead or draining.
	device layout.DeviceID
	after  layout.SegmentID
	pass   Progress // what the pass under way met
	last   Progress // what the last whole pass met
}

// Progress is how much waits for rebuild, by the last look at everything.
type Progress struct {
	Shards    int    // lost
	Bytes     uint64 // that these hold
	Moving    int    // shards on devices that are being drained
	MoveBytes uint64
	AtRisk    int // segments that can lose no more shard
	Urgent    int // segments of which Urgent says so
	Lacking   int // segments that can't be rebuilt: fewer than k shards are at hand
	Homeless  int // segments with a lost shard for which no device is left
}

// Urgent tells whether a segment is to be made whole faster than others: it can lose
// no more shard, or two are missing.
func Urgent(g layout.Geometry, spare int) bool { return spare <= 0 || int(g.M)-spare >= 2 }

// Progress tells what the last look met. Running counts the tasks handed out.
func (p *Planner) Progress() (met Progress, running int) {
	return p.rebuilds.last, p.inFlight[kindRebuild]
}

// Rebuilds tells whether a task about the segment is handed out.
func (p *Planner) Rebuilds(id layout.SegmentID) bool {
	return p.tries[key{kindRebuild, uint64(id)}].running
}

// giveUps declares devices dead that were gone for too long: with their server,
// or alone. A server that is heard again but not up yet is not gone.
func (pl *plan) giveUps() {
	for _, d := range pl.view.Devices() {
		server, _ := pl.view.Server(d.Server)
		if d.State == state.DeviceDead || (server.Up || pl.heard(server.ID)) && d.State != state.DeviceDown {
			continue
		}
		if gone := pl.p.gone.see(d.ID, pl.now); gone >= pl.p.limits.RebuildAfter {
			pl.add(GiveUp{Device: d.ID, Registered: server.Registered, Gone: gone})
		}
	}
	pl.p.gone.passed()
}

// rebuild looks on for segments with lost shards, then hands tasks out.
func (pl *plan) rebuild() {
	pl.scanLost()
	b := &builder{pl: pl}
	for danger := range pl.p.rebuilds.queue {
		b.serve(danger)
	}
}

// scanLost goes on in the listings by at most Scan records.
func (pl *plan) scanLost() {
	r := &pl.p.rebuilds
	for left := pl.p.limits.Scan; left > 0 && len(r.queued) < mostQueued; {
		var page []state.Segment
		var more bool
		if r.device == 0 {
			page, more = pl.view.Damaged(r.after, left)
		} else {
			page, more = pl.view.SegmentsOnDevice(r.device, r.after, left)
		}
		left -= len(page) + 1
		for i := range page {
			r.after = page[i].ID
			pl.enqueue(&page[i])
		}
		if more {
			continue
		}
		if r.device, r.after = pl.nextLost(r.device), 0; r.device == 0 {
			r.last, r.pass = r.pass, Progress{}
			return
		}
	}
}

// nextLost is the next device whose shards must go elsewhere; 0: no more.
func (pl *plan) nextLost(after layout.DeviceID) layout.DeviceID {
	for _, d := range pl.view.Devices() {
		if d.ID > after && (d.State == state.DeviceDead || d.State == state.DeviceDraining) {
			return d.ID
		}
	}
	return 0
}

func (pl *plan) enqueue(s *state.Segment) {
	r := &pl.p.rebuilds
	j, ok := pl.judge(s)
	if !ok {
		return
	}
	pl.meet(s, &j)
	if r.queued[s.ID] || pl.waits(key{kindRebuild, uint64(s.ID)}) || !j.possible(s) {
		return
	}
	r.queued[s.ID] = true
	r.queue[j.danger()] = append(r.queue[j.danger()], s.ID)
}

// meet counts a segment that was met. One with several lost shards is met as
// often as there are listings that it stands in; it is counted in the first.
func (pl *plan) meet(s *state.Segment, j *judgement) {
	r := &pl.p.rebuilds
	if first := pl.firstListing(s); first != r.device {
		return
	}
	for m := j.lost; m != 0; m &= m - 1 {
		i, _ := m.Nth(0)
		r.pass.Shards++
		r.pass.Bytes += uint64(s.Seal.Shards[i].Length)
	}
	for m := j.moving; m != 0; m &= m - 1 {
		i, _ := m.Nth(0)
		r.pass.Moving++
		r.pass.MoveBytes += uint64(s.Seal.Shards[i].Length)
	}
	if j.lost != 0 && j.spare <= 0 {
		r.pass.AtRisk++
	}
	if j.lost != 0 && Urgent(s.Geometry, j.spare) {
		r.pass.Urgent++
	}
	if !j.possible(s) {
		r.pass.Lacking++
	}
}

// firstListing is the listing in which a segment is met first.
func (pl *plan) firstListing(s *state.Segment) (first layout.DeviceID) {
	if s.Lost != 0 {
		return 0
	}
	for _, p := range s.Placements {
		d, _ := pl.view.Device(p.Device)
		if (d.State == state.DeviceDead || d.State == state.DeviceDraining) && (first == 0 || d.ID < first) {
			first = d.ID
		}
	}
	return first
}

// judgement is what is wrong with a segment.
type judgement struct {
	lost     layout.Mask // must be made again
	moving   layout.Mask // whole, on devices that are being drained
	readable layout.Mask // whole, and can be read now
	doubtful layout.Mask // marked lost, and can be read now
	spare    int
}

func (j *judgement) possible(s *state.Segment) bool {
	return (j.readable | j.doubtful).Count() >= int(s.Geometry.K)
}

func (j *judgement) danger() int {
	if j.lost == 0 {
		return dangers - 1
	}
	return min(max(j.spare, 0), dangers-2)
}

// judge tells whether a segment needs anything.
func (pl *plan) judge(s *state.Segment) (j judgement, needs bool) {
	if s.State != state.Finalized || !pl.view.Needed(s) {
		return j, false
	}
	missing := 0
	for i, p := range s.Placements {
		at := layout.ShardIndex(i)
		d, _ := pl.view.Device(p.Device)
		server, _ := pl.view.Server(d.Server)
		lost := s.Lost.Has(at) || d.State == state.DeviceDead
		answers := d.State != state.DeviceDead && d.State != state.DeviceDown && server.Up && !pl.silent(server.ID)
		switch {
		case lost && answers:
			j.doubtful = j.doubtful.With(at)
		case answers:
			j.readable = j.readable.With(at)
		}
		if lost {
			j.lost = j.lost.With(at)
		} else if d.State == state.DeviceDraining {
			j.moving = j.moving.With(at)
		}
		if lost || !answers {
			missing++
		}
	}
	j.spare = int(s.Geometry.M) - missing
	return j, j.lost|j.moving != 0
}

// builder makes the rebuild tasks of one plan.
type builder struct {
	pl     *plan
	placer *placement.Placer // made for the first that needs it
}

// serve hands out tasks for one degree of danger, as long as there is room.
func (b *builder) serve(danger int) {
	r, missed := &b.pl.p.rebuilds, 0
	var kept []layout.SegmentID
	for n, id := range r.queue[danger] {
		if b.pl.full(kindRebuild) || missed == misses {
			kept = append(kept, r.queue[danger][n:]...)
			break
		}
		if !b.task(id) {
			missed++
			kept = append(kept, id)
		} else {
			delete(r.queued, id)
		}
	}
	r.queue[danger] = kept
}

// task hands out the task for a segment. False: it must wait for a server that
// has a hand free.
func (b *builder) task(id layout.SegmentID) bool {
	s, ok := b.pl.view.Segment(id)
	if !ok || b.pl.waits(key{kindRebuild, uint64(id)}) {
		return true
	}
	j, needs := b.pl.judge(&s)
	if !needs || !j.possible(&s) {
		return true
	}
	t := Rebuild{Segment: id, Spare: j.spare, Move: j.lost == 0}
	if t.Shard, ok = j.lost.Nth(0); !ok {
		t.Shard, _ = j.moving.Nth(0)
	}
	t.Old = s.Placements[t.Shard]
	if !b.place(&t, &s, &j) {
		b.pl.p.rebuilds.pass.Homeless++
		return true
	}
	if b.pl.p.targets[t.Server] >= b.pl.p.limits.PerTarget {
		return false
	}
	t.Sources = b.pl.sources(&s, &j, &t)
	b.pl.p.targets[t.Server]++
	b.pl.add(t)
	return true
}

// place decides where a shard is made again. A shard marked lost on a device
// that lives is repaired there; if that fails it goes elsewhere, or, where there is
// no other place, stays at home under a new generation: its device may have lost
// all trace of the old one.
func (b *builder) place(t *Rebuild, s *state.Segment, j *judgement) bool {
	failures := b.pl.failures(*t)
	home := j.doubtful.Has(t.Shard)
	device, other := layout.DeviceID(0), false
	if !home || failures%2 != 0 {
		device, other = b.elsewhere(t, s, failures)
	}
	switch {
	case other:
		t.Device = device
	case home:
		t.InPlace, t.Device = failures%2 == 0, t.Old.Device
	default:
		return false
	}
	d, _ := b.pl.view.Device(t.Device)
	t.Server = d.Server
	return true
}

// elsewhere chooses another device. The draw follows from what it is for, so
// that equal histories give equal plans; a failure draws anew.
func (b *builder) elsewhere(t *Rebuild, s *state.Segment, failures int) (layout.DeviceID, bool) {
	device, err := b.placerNow().Substitute(b.substitution(s, t), rand.NewPCG(uint64(t.Segment), uint64(t.Shard)<<32+uint64(failures)))
	return device, err == nil
}

// substitution asks for another device for the task's shard.
func (b *builder) substitution(s *state.Segment, t *Rebuild) placement.Substitution {
	req := placement.Substitution{Length: s.Seal.Shards[s.Geometry.K].Length, AvoidDevices: []layout.DeviceID{t.Old.Device},
		Load: func(id layout.ServerID) int { return b.pl.p.targets[id] }}
	single := len(b.pl.view.Servers()) == 1
	for i, p := range s.Placements {
		if layout.ShardIndex(i) == t.Shard {
			continue
		}
		req.Others = append(req.Others, p.Device)
		if d, _ := b.pl.view.Device(p.Device); !single {
			req.AvoidServers = append(req.AvoidServers, d.Server)
		}
	}
	return req
}

// sources are the shards that can be read, whole ones first.
func (pl *plan) sources(s *state.Segment, j *judgement, t *Rebuild) (list []Source) {
	for _, from := range []layout.Mask{j.readable, j.doubtful} {
		for m := from; m != 0; m &= m - 1 {
			i, _ := m.Nth(0)
			if t.Device == t.Old.Device && i == t.Shard {
				continue // it is repaired, or makes way for what is made of the others
			}
			d, _ := pl.view.Device(s.Placements[i].Device)
			list = append(list, Source{Doubtful: j.doubtful.Has(i), Shard: Shard{Index: i, Server: d.Server, Placement: s.Placements[i]}})
		}
	}
	return list
}
