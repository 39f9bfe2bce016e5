package sim

import (
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
)

// world is what a process reaches of the simulation.
type world struct {
	s *Sim
	p *process
}

func (w world) Now() time.Duration              { return w.p.clock() }
func (w world) After(d time.Duration, f func()) { w.p.after(d, f) }
func (w world) Draw() uint64                    { return w.s.rand.Uint64() }
func (w world) MetaServers() int                { return metaServers }
func (w world) Meta(server int, request any, done func(any, error)) {
	w.s.metaCall(w.p, server, request, done)
}

func (w world) Chunk(server layout.ServerID, request any, done func(*simclient.ChunkReply, error)) {
	to := w.s.servers[server]
	if to == nil {
		w.p.after(leastDelay, func() { done(nil, errs.New(errs.Unavailable, "", "no address known for server %d", server)) })
		return
	}
	w.s.call(w.p, to, request, done)
}

// watcher is the observer of one process.
type watcher struct {
	*Sim
	p *process
}

// Decided implements simclient.Observer. Some recoverers stand still before they do
// what they decided, so long that others take over; some will die half-way.
func (w watcher) Decided(v layout.VolumeID, e layout.Epoch, d simclient.Decision, err error) {
	w.Sim.Decided(v, e, d, err)
	switch {
	case d.Tail == 0 || w.healed:
	case w.chance(120):
		w.note("recoverer stands still", uint64(v), uint64(e))
		w.rare("a recoverer stands still")
		w.p.pause(w.between(sessionTTL, 2*sessionTTL))
	case w.chance(200):
		w.doomed[epochOf{v, e}] = w.p
	}
}

// newClient makes a client in a process.
func (s *Sim) newClient(p *process, o simclient.Options) *simclient.Client {
	o.Builder, o.Coders, o.Fibers = s.bench.builder, &s.bench.coders, &s.bench.fibers
	return simclient.New(world{s, p}, watcher{s, p}, o)
}

// clientProcess is a program that uses volumes. It carries out a script of
// random operations; when it dies it comes back and goes on.
type clientProcess struct {
	process
	s      *Sim
	number int
	c      *simclient.Client
}

func newClientProcess(s *Sim, number int, at node) *clientProcess {
	return &clientProcess{process: process{l: s.loop, at: at}, s: s, number: number}
}

// start begins a life.
func (p *clientProcess) start() {
	if p.up {
		return
	}
	p.up = true
	p.c = p.s.newClient(&p.process, simclient.Options{Owner: "client", MemoryCap: memoryCap, Clean: p.s.habits.cleaning()})
	p.s.note("client starts", uint64(p.number))
	p.c.Go(func(f *simclient.Fiber) {
		for p.c.Open(f) != nil {
			if !p.sleep(f, 200*time.Millisecond) {
				return
			}
		}
		script := &script{p: p, s: p.s, f: f}
		for !p.s.healed && script.step() {
		}
	})
}

// kill ends the process where it stands.
func (p *clientProcess) kill() {
	if !p.up {
		return
	}
	p.c.Kill()
	p.end()
	for _, h := range p.s.volumes {
		h.died(p)
	}
}

func (p *clientProcess) sleep(f *simclient.Fiber, d time.Duration) bool {
	return f.Wait(func(done func()) { p.after(d, done) })
}
