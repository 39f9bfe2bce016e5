package sim

import (
	"fmt"
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
)

// lines are the volumes' names; the last is the administrator's clone.
var lines = [...]string{"v0", "v1", "clone"}

const (
	cloneLine     = 2
	administrator = 3 // the client that makes snapshots, clones and rollbacks
	// mostSnapshots of a volume stand at a time.
	mostSnapshots = 5
	leastGarbage  = 32 << 10
)

// habits are what users do in a seed, besides reading and writing.
type habits struct {
	branches   bool              // snapshots, clones, rollbacks
	cleanEvery time.Duration     // how often writers look for garbage; 0: they don't
	rows       layout.BlockCount // moved at once
}

// Of how many seeds of 1000 have users which habit.
const (
	branching = 450
	cleaningW = 500
)

func (s *Sim) drawHabits() (h habits) {
	h.branches = s.chance(branching)
	if s.chance(cleaningW) {
		h.cleanEvery = s.between(100*time.Millisecond, 2*time.Second)
	}
	return h
}

// cleaning is how the seed's clients clean: volumes are small, so little is left alone.
func (h habits) cleaning() simclient.Cleaning {
	return simclient.Cleaning{Every: h.cleanEvery, Rows: h.rows, Busy: simclient.Goal{Start: 400, Stop: 300, Least: leastGarbage},
		Idle: simclient.Goal{Start: 100, Stop: 50, Least: leastGarbage}}
}

// thorough is how a checker cleans, when it is time to: down to a twentieth.
func (h habits) thorough() simclient.Cleaning {
	c := h.cleaning()
	c.Every, c.Idle = 0, simclient.Goal{Start: 50, Stop: 50, Least: leastGarbage}
	return c
}

// govern does one thing that an administrator does.
func (x *script) govern() bool {
	var ok bool
	switch n := x.s.rand.IntN(100); {
	case n < 30:
		ok = x.takeSnapshot()
	case n < 60:
		ok = x.lookAtSnapshot()
	case n < 70:
		ok = x.dropSnapshot()
	case n < 78:
		ok = x.rollBack()
	default:
		ok = x.useClone()
	}
	return ok && x.sleep(20*time.Millisecond, 900*time.Millisecond)
}

// anyLine chooses a volume that is there.
func (x *script) anyLine() *history {
	if h := x.s.named(lines[x.s.rand.IntN(len(lines))]); h != nil {
		return h
	}
	return x.s.named(lines[x.s.rand.IntN(cloneLine)])
}

func (x *script) anySnapshot() *snapshot {
	list := x.s.standing(x.anyLine().name)
	if len(list) == 0 {
		return nil
	}
	return list[x.s.rand.IntN(len(list))]
}

func (x *script) takeSnapshot() bool {
	h := x.anyLine()
	if len(x.s.standing(h.name)) >= mostSnapshots {
		return x.dropSnapshot()
	}
	x.s.snapshots++
	name := fmt.Sprintf("s%d", x.s.snapshots)
	h.asksForSnapshot(name)
	err := x.p.c.CreateSnapshot(x.f, h.name, name)
	x.s.note("create snapshot", uint64(h.id), uint64(x.s.snapshots), uint64(errs.KindOf(err)))
	return !x.dead()
}

func (x *script) dropSnapshot() bool {
	n := x.anySnapshot()
	if n == nil {
		return true
	}
	err := x.p.c.RemoveSnapshot(x.f, n.of.name, n.name)
	x.s.note("remove snapshot", uint64(n.id), uint64(errs.KindOf(err)))
	return !x.dead()
}

// lookAtSnapshot opens a snapshot and reads of it, at times again and again.
func (x *script) lookAtSnapshot() bool {
	n := x.anySnapshot()
	if n == nil {
		return true
	}
	v, err := x.p.c.OpenSnapshot(x.f, n.of.name, n.name)
	if x.dead() {
		return false
	}
	x.s.note("open snapshot", uint64(n.id), uint64(errs.KindOf(err)))
	if err != nil {
		return x.cantOpen(n, err)
	}
	x.s.rare("a snapshot read")
	for again := true; again; again = x.s.chance(600) {
		count := 1 + x.s.rand.IntN(x.s.blocks/2)
		first := layout.BlockNumber(x.s.rand.IntN(x.s.blocks - count + 1))
		if !x.s.readSnapshot(x.f, v, first, layout.BlockCount(count)) || !x.sleep(0, time.Second) {
			return false
		}
		if x.s.chance(100) {
			_ = x.p.c.RemoveSnapshot(x.f, n.of.name, n.name) // who reads it goes on
		}
		if x.s.frozen[v.Snapshot()].hidden {
			x.s.rare("a removed snapshot read on")
		}
		if !x.p.c.Holds(v) {
			break // its session is over, and the snapshot may go with it
		}
	}
	return v.Close(x.f) == nil && !x.dead()
}

// cantOpen judges why a snapshot could not be opened.
func (x *script) cantOpen(n *snapshot, err error) bool {
	if kind := errs.KindOf(err); kind == errs.Corrupt && len(x.s.hurt) == 0 || kind == errs.NotFound && !n.hidden {
		x.s.fail("P5: snapshot %d of volume %d can't be opened: %v", n.id, n.of.id, err)
	}
	return true
}

func (x *script) rollBack() bool {
	h := x.anyLine()
	list := x.s.standing(h.name)
	if len(list) == 0 {
		return true
	}
	n := list[x.s.rand.IntN(len(list))]
	err := x.p.c.RollbackVolume(x.f, h.name, n.name, x.s.chance(600))
	x.s.note("roll back", uint64(h.id), uint64(n.id), uint64(errs.KindOf(err)))
	return !x.dead()
}

// useClone makes the clone, works with it, or lets it go.
func (x *script) useClone() bool {
	h := x.s.named(lines[cloneLine])
	if h == nil || h.removed {
		n := x.anySnapshot()
		if n == nil || n.of.name == lines[cloneLine] {
			return true
		}
		err := x.p.c.CloneVolume(x.f, n.of.name, n.name, lines[cloneLine])
		x.s.note("clone", uint64(n.id), uint64(errs.KindOf(err)))
		return !x.dead()
	}
	switch x.s.rand.IntN(10) {
	case 0:
		if x.open[cloneLine].v != nil && !x.close(cloneLine) {
			return false
		}
		err := x.p.c.RemoveVolume(x.f, h.name)
		x.s.note("remove clone", uint64(h.id), uint64(errs.KindOf(err)))
		return !x.dead()
	case 1, 2:
		err := x.p.c.FlattenVolume(x.f, h.name)
		x.s.note("flatten", uint64(h.id), uint64(errs.KindOf(err)))
		return !x.dead()
	}
	for range 1 + x.s.rand.IntN(8) {
		if !x.do(cloneLine) || !x.sleep(0, 5*time.Millisecond) {
			return false
		}
	}
	return true
}
