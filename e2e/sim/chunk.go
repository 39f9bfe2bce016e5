package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"strake/chunkd/store"
	"strake/client/simclient"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/pb"
)

// chunkServer is one chunk server with one device.
type chunkServer struct {
	process
	s         *Sim
	number    int
	id        layout.ServerID
	device    layout.DeviceID
	disk      *disk
	store     *store.Store
	serving   bool // registered in this life
	leader    int  // the metadata server that answered last
	heardBack bool // the last heartbeat was answered

	busyUntil time.Duration // the device works until then
	slowness  time.Duration // added to each call
	damaged   bool          // its medium may rot; at most m devices are
	lost      bool          // for ever
	cut       *powerCut     // waits for a call to hit
	calls     []*flight     // under way to this life
	janitors  []*simclient.Client
	fibers    simclient.Fibers         // of rebuilds
	busy      map[layout.ShardKey]bool // shards that a task works on
}

// powerCut cuts the power in the middle of a call.
type powerCut struct {
	skip int   // matching operations of the disk before it
	left *disk // what it left, once it happened
}

func (c *chunkServer) String() string { return fmt.Sprintf("server %d", c.id) }

// start opens the store and registers.
func (c *chunkServer) start() {
	if c.up || c.lost {
		return
	}
	st, err := c.s.stores.open(c.disk, c.clock)
	if err != nil {
		c.s.fail("server %d can't open its device: %v", c.id, err)
		return
	}
	c.store, c.up, c.serving = st, true, false
	c.fibers, c.busy = simclient.Fibers{Pool: &c.s.bench.fibers}, map[layout.ShardKey]bool{}
	c.s.note("server starts", uint64(c.number), uint64(st.Incarnation()))
	c.register()
	c.sweep()
	c.scrub(0)
}

// crash cuts the power. Of what was not synced a part survives.
func (c *chunkServer) crash() {
	if !c.up {
		return
	}
	keep := [...]int{0, 10, 50, 100}[c.s.rand.IntN(4)]
	c.fall(c.disk.after(c.drawPCG(), keep))
	c.s.note("server crashes", uint64(c.number), uint64(keep))
}

func (c *chunkServer) drawPCG() *rand.Rand {
	return rand.New(rand.NewPCG(c.s.rand.Uint64(), c.s.rand.Uint64()))
}

// fall ends this life; the next one begins with what is left on the disk.
func (c *chunkServer) fall(left *disk) {
	if !c.s.stores.pebble {
		c.disk.data.Cut() // Close needs not write: nobody looks at this disk any more
	}
	_ = c.store.Close()
	c.store, c.disk, c.cut = nil, left, nil
	c.end()
	c.serving, c.busyUntil = false, 0
	c.s.net.restarted(c.at)
	for _, j := range c.janitors {
		j.Kill()
	}
	c.janitors = nil
	c.fibers.Kill()
	calls := c.calls
	c.calls = nil
	for _, f := range calls {
		f.reset()
	}
}

// flight is one call under way to a chunk server.
type flight struct {
	s        *Sim
	from     *process
	to       *chunkServer
	over     bool
	answered func(*simclient.ChunkReply, error)
}

// reset tells the caller that the connection broke, if that gets through.
func (f *flight) reset() {
	f.s.net.send(f.to.at, f.from.at, kindControl, true, func() { f.finish(nil, broken(f.to.String())) })
}

// finish gives the caller its answer, once, unless it died meanwhile.
func (f *flight) finish(r *simclient.ChunkReply, err error) {
	if !f.over {
		f.over = true
		f.answered(r, err)
	}
}

// call sends a request to a chunk server for a process.
func (s *Sim) call(from *process, to *chunkServer, request any, done func(*simclient.ChunkReply, error)) {
	life := from.life
	f := &flight{s: s, from: from, to: to, answered: func(r *simclient.ChunkReply, err error) {
		if from.life == life {
			from.do(func() { done(r, err) })
		}
	}}
	k := kindOf(request)
	s.net.send(from.at, to.at, k, false, func() {
		if !to.up || !to.serving {
			f.reset()
			return
		}
		if _, ping := request.(*simclient.Ping); ping { // it waits for no device
			to.do(func() { to.answer(f, k, &simclient.ChunkReply{}, nil) })
			return
		}
		to.calls = append(to.live(), f)
		to.do(func() { to.serve(request, f, k) })
	})
	s.after(time.Millisecond, func() { // a connection that is refused is refused at once
		if !to.up && !s.net.blocked[[2]node{from.at, to.at}] {
			f.reset()
		}
	})
}

// live drops the calls that are over.
func (c *chunkServer) live() []*flight {
	if len(c.calls) < 64 {
		return c.calls
	}
	kept := c.calls[:0]
	for _, f := range c.calls {
		if !f.over {
			kept = append(kept, f)
		}
	}
	return kept
}

// serve does a call when the device comes to it, and sends the answer.
func (c *chunkServer) serve(request any, f *flight, k kind) {
	life := c.life
	start := max(c.busyUntil, c.l.now)
	c.busyUntil = start + c.cost(request) + c.slowness
	c.l.after(c.busyUntil-c.l.now, func() {
		if c.life != life {
			return
		}
		c.do(func() {
			switch q := request.(type) {
			case *recoverVolume:
				c.recover(q.volume, func(err error) { c.answer(f, k, &simclient.ChunkReply{}, err) })
				return
			case *cleanVolume:
				c.clean(q.volume, func(err error) { c.answer(f, k, &simclient.ChunkReply{}, err) })
				return
			case *rebuildShard:
				c.rebuild(q.request, func(r *pb.RebuiltShard, err error) { c.answer(f, k, &simclient.ChunkReply{Other: r}, err) })
				return
			}
			r, err := c.handle(request)
			if c.cut != nil && c.cut.left != nil {
				c.s.note("power cut in a call", uint64(c.number))
				c.s.rare("a power cut in the middle of a call")
				c.fall(c.cut.left)
				return
			}
			c.answer(f, k, r, err)
		})
	})
}

func (c *chunkServer) answer(f *flight, k kind, r *simclient.ChunkReply, err error) {
	c.s.net.send(c.at, f.from.at, k, true, func() { f.finish(r, err) })
}

func (c *chunkServer) cost(request any) time.Duration {
	switch request.(type) {
	case *simclient.Sync, *simclient.Fence, *finalizeShards, *createShards:
		return 150 * time.Microsecond
	}
	return 15 * time.Microsecond
}

// arm makes the next call that writes to the log (or, without one, to a data
// file alone) find the power cut.
func (c *chunkServer) arm() {
	if c.up && c.cut == nil {
		c.cut = &powerCut{skip: c.s.rand.IntN(2)}
	}
}

// underCut runs a call with the power cut armed, if one is.
func (c *chunkServer) underCut(single bool, call func() error) error {
	cut := c.cut
	if cut == nil || c.s.stores.mode == modeData && !single {
		return call()
	}
	prefix := "log/"
	if c.s.stores.mode == modeData {
		prefix = "shards/"
	}
	keep, rng := [...]int{0, 10, 50, 100}[c.s.rand.IntN(4)], c.drawPCG()
	c.disk.fault.Hook(func(op vfs.Op) error {
		if strings.HasPrefix(op.Path, prefix) && (op.Kind == vfs.OpWrite || op.Kind == vfs.OpSync) {
			if cut.skip--; cut.skip < 0 && cut.left == nil {
				cut.left = c.disk.after(rng, keep)
			}
		}
		return nil
	})
	defer c.disk.fault.Hook(nil)
	return call()
}
