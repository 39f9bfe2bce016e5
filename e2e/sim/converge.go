package sim

import (
	"fmt"
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/meta/state"
)

const (
	settleLimit = 5 * time.Minute // virtual
	calm        = 10 * time.Second
	scrubRounds = 5
)

// converge heals the cell, opens and reads every volume, and waits until nothing
// is left to do. Then the last checkers look.
func (s *Sim) converge() {
	if s.err != nil {
		return
	}
	s.healed = true
	s.note("healed")
	s.net.heal()
	for _, c := range s.clients {
		c.kill()
	}
	for _, c := range s.chunks {
		c.slowness, c.standing, c.cut = 0, 0, nil
		c.start()
	}
	if s.meta.leader < 0 {
		s.meta.elect(s.rand.IntN(metaServers))
	}
	s.run(s.now+calm, func() bool { return false })
	for _, c := range s.chunks { // one that was slow has work left from then
		s.run(max(s.now, c.busyUntil), func() bool { return false })
	}
	s.readAll()
	if s.habits.cleanEvery > 0 && s.err == nil {
		s.asChecker(s.cleanAll)
	}
	if s.chance(500) && s.err == nil {
		s.removeOne()
	}
	for round := 0; ; round++ {
		s.settle()
		if s.err != nil || s.scrubAll() == 0 {
			break
		}
		if round == scrubRounds {
			s.fail("repair does not end: after %d rounds a scrub still finds bad shards", round)
		}
	}
	if s.habits.branches && s.err == nil {
		s.asChecker(s.readFrozen)
		s.settle() // a janitor may have begun something meanwhile
		if s.habits.cleanEvery > 0 && s.chance(500) && s.err == nil {
			s.letGo()
		}
	}
	if s.err == nil {
		s.meta.agree()
		s.checkFrozen(s.meta.view())
		s.checkSpace()
	}
}

// settle waits until nothing is left to do.
func (s *Sim) settle() {
	s.run(s.now+settleLimit, s.settled)
	if s.err == nil && !s.settled() {
		s.fail("the cell does not settle: %s", s.unsettled())
	}
}

// scrubAll has every server verify all it has, and gives the time to tell of what
// was found.
func (s *Sim) scrubAll() (found int) {
	for _, c := range s.chunks {
		if c.store == nil || c.lost {
			continue
		}
		for _, ref := range c.finalized() {
			if !s.short(ref.Segment) {
				found += c.scrubOne(ref)
			}
		}
	}
	s.run(s.now+time.Second, func() bool { return found == 0 })
	return found
}

// readAll opens every volume as a writer, reads all of it, writes and closes; then it
// reads every snapshot.
func (s *Sim) readAll() {
	s.asChecker(func(p *clientProcess, f *simclient.Fiber) {
		for _, h := range s.heads() {
			s.readOne(p, f, h)
		}
		s.readFrozen(p, f)
	})
}

// asChecker runs a client that must come to its end in a healed cell.
func (s *Sim) asChecker(work func(p *clientProcess, f *simclient.Fiber)) {
	done := false
	p := &clientProcess{process: process{l: s.loop, at: s.clients[0].at, up: true}, s: s}
	p.c = s.newClient(&p.process, simclient.Options{Owner: "checker", MemoryCap: memoryCap, Clean: s.habits.thorough()})
	s.clients = append(s.clients, p)
	p.c.Go(func(f *simclient.Fiber) {
		if err := p.c.Open(f); err != nil {
			s.fail("no session in a healed cell: %v", err)
			return
		}
		work(p, f)
		_ = p.c.Close(f)
		done = true
	})
	s.run(s.now+settleLimit, func() bool { return done })
	if s.err == nil && !done {
		s.fail("a healed cell does not serve a client")
	}
}

func (s *Sim) readOne(p *clientProcess, f *simclient.Fiber, h *history) {
	v, err := p.c.OpenWriter(f, h.name, true)
	if err != nil {
		s.fail("P1: volume %d can't be opened in a healed cell: %v", h.id, err)
		return
	}
	w := h.opened(v, p)
	x := &script{p: p, s: s, f: f}
	r := h.begin(v, w, 0, layout.BlockCount(s.blocks))
	data, err := v.Read(f, 0, layout.BlockCount(s.blocks))
	r.end(data, err)
	hd := &handle{v, w}
	for range 3 {
		x.write(hd)
	}
	x.flush(hd)
	if err := v.Close(f); err != nil {
		s.fail("volume %d can't be closed in a healed cell: %v", h.id, err)
	}
}

// removeTries bounds the seconds that a janitor may hold a volume that is to be removed.
const removeTries = 30

// removeOne removes a volume for ever: all its shards must go. A janitor that cleans
// it, or recovers it, just now is waited for.
func (s *Sim) removeOne() {
	id, over := s.heads()[s.rand.IntN(2)].id, false
	s.meta.spawn(func(f *simclient.Fiber) {
		for try := 1; ; try++ {
			_, err := s.meta.propose(f, state.RemoveVolume{ID: 99, Volume: state.VolumeRef{ID: id}, Now: true})
			if errs.KindOf(err) == errs.LeaseHeld && try < removeTries {
				if !f.Wait(func(done func()) { s.after(time.Second, done) }) {
					return // the term ended; the end tells
				}
				continue
			}
			if err != nil {
				s.fail("remove volume %d: %v", id, err)
			}
			over = true
			return
		}
	})
	s.run(s.now+removeTries*time.Second, func() bool { return over })
	s.run(s.now+time.Second, func() bool { return false })
}

// places tells where a segment's shards are, and how these places are.
func (s *Sim) places(g *state.Segment) (text string) {
	v := s.meta.view()
	for _, p := range g.Placements {
		d, _ := v.Device(p.Device)
		srv, _ := v.Server(d.Server)
		text += fmt.Sprintf(" %d/%d(%v, up %v)", p.Device, p.Generation, d.State, srv.Up)
	}
	return text
}

// unsettled names what is left to do.
func (s *Sim) unsettled() (what string) {
	v := s.meta.view()
	name := func(kind string, list []state.Segment) {
		for _, g := range list[:min(len(list), 3)] {
			what += fmt.Sprintf(" %s segment %d (%v, lost %b:%s)", kind, g.ID, g.State, g.Lost, s.places(&g))
		}
	}
	page, _ := v.Unfinalized(0, 0)
	name("unfinalized", page)
	page, _ = v.Deletable(0, 0)
	name("deletable", page)
	page, _ = v.Allocated(0, 0)
	name("allocated", page)
	if id := s.lacking(); id != 0 {
		g, _ := v.Segment(id)
		what += fmt.Sprintf(" segment %d lacks shards (%v, lost %b:%s)", id, g.State, g.Lost, s.places(&g))
	}
	what += s.strayText()
	if g := s.lingering(); g != nil {
		what += fmt.Sprintf(" volume %d lingers", g.ID)
	}
	if freeing, _ := v.Freeing(0, 0); len(freeing) > 0 {
		what += fmt.Sprintf(" volume %d is looked through for what it can free", freeing[0].ID)
	}
	if orphans, _ := v.Unrecovered(0, 0); len(orphans) > 0 {
		what += " volumes without recovery"
	}
	return what
}

// heads lists the volumes that have a name.
func (s *Sim) heads() (list []*history) {
	for _, name := range lines {
		if h := s.named(name); h != nil && !h.removed {
			list = append(list, h)
		}
	}
	return list
}

// readFrozen reads every snapshot, all of it.
func (s *Sim) readFrozen(p *clientProcess, f *simclient.Fiber) {
	for _, name := range lines {
		for _, n := range s.standing(name) {
			v, err := p.c.OpenSnapshot(f, n.of.name, n.name)
			if err != nil {
				s.fail("P5: snapshot %d of volume %d can't be opened in a healed cell: %v", n.id, n.of.id, err)
				return
			}
			s.readSnapshot(f, v, 0, layout.BlockCount(s.blocks))
			_ = v.Close(f)
		}
	}
}
