package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"strake/client/simclient"
	linear "strake/e2e/history"
	"strake/internal/erasure"
	"strake/internal/erasure/build"
	"strake/internal/layout"
	"strake/meta/state"
)

// Options are a run's parameters.
type Options struct {
	Seed  uint64
	Ops   int       // client operations at least; 0: 300
	Trace io.Writer // gets every event; nil: none
}

// Result is what a run came to.
type Result struct {
	Err    error
	Hash   uint64 // of the event log
	Events int
	Ops    int
	Faults int
	Took   time.Duration // virtual
	Rare   map[string]int
	Tail   []string // the last events, of a failure
}

// Bench keeps what seeds share: it is dear to make and the same for all. One run
// at a time may use it.
type Bench struct {
	plant   Plant
	coders  erasure.Set
	builder *build.Builder
	fibers  simclient.Pool
}

// Close ends what the bench keeps.
func (b *Bench) Close() { b.fibers.Close() }

// NewBench makes an empty bench.
func NewBench() *Bench {
	b := &Bench{}
	b.builder = build.New(&b.coders)
	return b
}

const (
	memoryCap = 16 << 20
	timeLimit = 15 * time.Minute // virtual
	// Sizes of volumes in blocks.
	smallVolume, largeVolume = 128, 512
	// pebbles is how many seeds of 1000 have Pebble in their stores.
	pebbles = 40
	// linears is how many have clients that take turns on single blocks.
	linears = 60
	// smallDevices is how many of those with short segments have devices on which a
	// few segments make a difference: a rebalance moves some there.
	smallDevices = 500
)

// Sim is one run.
type Sim struct {
	*loop
	bench     *Bench
	opts      Options
	stores    storeKind
	net       *network
	linear    *linear.Log // of a seed whose clients take turns on single blocks
	meta      *metaService
	chunks    []*chunkServer
	servers   map[layout.ServerID]*chunkServer
	clients   []*clientProcess
	volumes   []*history
	seen      int // log index up to which the checkers looked
	counts    map[string]int
	ops       int
	parity    int // the least m of the volumes
	frozen    map[layout.SnapshotID]*snapshot
	habits    habits
	versions  uint64 // of blocks that were submitted
	snapshots int    // that were asked for
	scale     uint64 // devices say that they are so many times smaller than they are
	blocks    int    // of each volume
	sealed    map[layout.SegmentID]*sealing
	hurt      map[layout.DeviceID]bool // devices whose stored bytes were damaged
	healed    bool
	fences    map[layout.ShardKey]layout.Epoch // highest answered
	faulted   int
	moved     bool                 // a shard was rebuilt elsewhere
	doomed    map[epochOf]*process // recoverers that die when their epoch is closed
}

// Run runs one seed.
func (b *Bench) Run(o Options) Result { return b.newSim(o).play() }

func (b *Bench) newSim(o Options) *Sim {
	if o.Ops == 0 {
		o.Ops = 300
	}
	s := &Sim{loop: newLoop(o.Seed), bench: b, opts: o, servers: map[layout.ServerID]*chunkServer{},
		counts: map[string]int{}, frozen: map[layout.SnapshotID]*snapshot{}, sealed: map[layout.SegmentID]*sealing{}, hurt: map[layout.DeviceID]bool{}, fences: map[layout.ShardKey]layout.Epoch{}, doomed: map[epochOf]*process{}}
	s.log.trace = o.Trace
	return s
}

// play plays the run to its end.
func (s *Sim) play() (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Err = fmt.Errorf("panic: %v", p)
			if s.log.trace != nil {
				panic(p)
			}
		}
		r.Hash, r.Events, r.Ops, r.Faults, r.Took, r.Rare = s.log.hash, s.log.n, s.ops, s.faulted, s.now, s.counts
		if r.Err != nil {
			r.Tail = s.log.tail()
		}
		s.close()
	}()
	s.build()
	s.work()
	s.converge()
	s.checkLinear()
	return Result{Err: s.err}
}

// close frees what the run holds.
func (s *Sim) close() {
	for _, c := range s.clients {
		c.kill()
	}
	for _, c := range s.chunks {
		c.fibers.Kill()
		if c.store != nil {
			_ = c.store.Close()
		}
		for _, j := range c.janitors {
			j.Kill()
		}
		c.fibers.Kill()
	}
	s.meta.stepDown()
}

// rare counts an event that seldom happens.
func (s *Sim) rare(what string) { s.counts[what]++ }

// build makes the cell: metadata servers, chunk servers, volumes, clients.
func (s *Sim) build() {
	s.stores = storeKind{mode: storeMode(s.rand.IntN(int(modes))), pebble: s.chance(pebbles)}
	if s.blocks = smallVolume; s.chance(100) {
		s.blocks = largeVolume
	}
	if s.chance(linears) {
		s.linear = &linear.Log{}
	}
	s.habits = s.drawHabits()
	s.net = newNetwork(s.loop)
	s.net.lost = func(k kind, reply bool) {
		if k == kindMeta && reply {
			s.rare("a lost metadata reply")
		}
	}
	s.meta = newMetaService(s)
	for i := range 7 + s.rand.IntN(3) {
		disk, err := s.bench.plant.disk(i+1, s.stores)
		if err != nil {
			s.fail("format device: %v", err)
			return
		}
		c := &chunkServer{process: process{l: s.loop, at: node(metaServers + i)}, s: s, number: i, disk: disk}
		s.chunks = append(s.chunks, c)
	}
	s.setUp()
	clients := rival + 1
	if s.habits.branches {
		clients = administrator + 1
	}
	for i := range clients {
		s.clients = append(s.clients, newClientProcess(s, i, node(metaServers+len(s.chunks)+i)))
	}
}

// setUp forms the cell and makes the volumes, in good weather.
func (s *Sim) setUp() {
	lengths := [...]layout.ShardOffset{64 << 10, 128 << 10, 512 << 10, 2 << 20}
	length := lengths[s.rand.IntN(len(lengths))]
	if s.scale = 1; length <= 128<<10 && s.chance(smallDevices) {
		s.scale = 16
	}
	s.habits.rows = layout.Blocks(min(int64(length), layout.MaxUnit))
	s.meta.elect(s.rand.IntN(metaServers))
	s.meta.spawn(func(f *simclient.Fiber) {
		if _, err := s.meta.propose(f, state.FormCell{Cell: cellID, ShardLength: length}); err != nil {
			s.fail("form: %v", err)
		}
		for _, c := range s.chunks {
			c.start()
		}
	})
	s.run(s.now+time.Minute, func() bool { return len(s.servers) == len(s.chunks) })
	geometries := [...]layout.Geometry{{K: 2, M: 1}, {K: 2, M: 2}, {K: 4, M: 2}, {K: 3, M: 1}}
	s.parity = layout.MaxParity
	s.meta.spawn(func(f *simclient.Fiber) {
		for i := range 2 {
			g := geometries[s.rand.IntN(len(geometries))]
			s.parity = min(s.parity, int(g.M))
			r, err := s.meta.propose(f, state.CreateVolume{ID: state.CommandID(i + 1), Name: lines[i], SizeBytes: uint64(s.blocks) * layout.BlockSize, Geometry: g})
			if err != nil {
				s.fail("create volume: %v", err)
			}
			s.volumes = append(s.volumes, newHistory(s, r.Volume, lines[i]))
		}
	})
	s.run(s.now+time.Minute, func() bool { return len(s.volumes) == 2 })
	damaged := s.rand.Perm(len(s.chunks))[:s.parity]
	for _, i := range damaged {
		s.chunks[i].damaged = true
	}
}

// work runs the clients' operations under faults.
func (s *Sim) work() {
	for _, c := range s.clients {
		c.start()
	}
	s.faults()
	s.run(timeLimit, func() bool { return s.ops >= s.opts.Ops && s.faulted >= leastFaults })
	if s.err == nil && s.ops < s.opts.Ops {
		s.fail("only %d operations in %v", s.ops, timeLimit)
	}
}

// volume finds a volume's history.
func (s *Sim) volume(id layout.VolumeID) *history {
	for _, h := range s.volumes {
		if h.id == id {
			return h
		}
	}
	return nil
}

// named gives the newest volume of a name; nil: there never was one.
func (s *Sim) named(name string) (newest *history) {
	for _, h := range s.volumes {
		if h.name == name {
			newest = h
		}
	}
	return newest
}

// CountersText prints counters, one a line.
func CountersText(rare map[string]int) string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(rare)) {
		fmt.Fprintf(&b, "%8d  %s\n", rare[what], what)
	}
	return b.String()
}
