package sim

import (
	"cmp"
	"slices"
	"time"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/client/simclient"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/meta/state"
)

const leastFaults = 6

// faults makes one fault after another until the cell is healed.
func (s *Sim) faults() {
	s.after(s.between(100*time.Millisecond, 1500*time.Millisecond), func() {
		if s.healed {
			return
		}
		s.fault()
		s.faults()
	})
}

// fault chooses one.
func (s *Sim) fault() {
	kinds := [...]struct {
		weight int
		do     func()
	}{
		{14, s.faultCrash}, {10, s.faultPowerCut}, {6, s.faultPause}, {10, s.faultPartition}, {6, s.faultIsolate},
		{8, s.faultSlow}, {10, s.faultWeather}, {8, s.faultLeader}, {4, s.faultSnapshot}, {8, s.faultClientDies},
		{6, s.faultClientSleeps}, {3, s.faultClock}, {8, s.faultRot}, {2, s.faultLoss}, {4, s.faultOutage}, {3, s.faultRotAndDeath}, {5, s.faultDrain}, {5, s.faultRebalance}, {4, s.faultBadWrite}, {5, s.faultDeposedSleeper},
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := s.rand.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			s.faulted++
			k.do()
			return
		}
	}
}

func (s *Sim) anyChunk() *chunkServer { return s.chunks[s.rand.IntN(len(s.chunks))] }

// faultCrash restarts servers: one, or several at once.
func (s *Sim) faultCrash() {
	n := 1
	if s.chance(250) {
		n = 2 + s.rand.IntN(len(s.chunks)-1)
		s.rare("several servers crash at once")
	}
	for _, i := range s.rand.Perm(len(s.chunks))[:n] {
		s.chunks[i].crash()
		s.restartLater(s.chunks[i])
	}
}

func (s *Sim) restartLater(c *chunkServer) {
	most := 5 * time.Second
	if s.chance(250) {
		most = 20 * time.Millisecond // a process that is started again at once
	}
	s.after(s.between(time.Millisecond, most), c.start)
}

func (s *Sim) faultPowerCut() {
	c := s.anyChunk()
	c.arm()
	s.after(s.between(100*time.Millisecond, 3*time.Second), func() {
		c.crash() // unless the cut came
		s.restartLater(c)
	})
}

func (s *Sim) faultPause() {
	c := s.anyChunk()
	d := s.between(50*time.Millisecond, 6*time.Second)
	s.note("server stands still", uint64(c.number), uint64(d))
	c.pause(d)
}

// faultPartition cuts one node off from some others, one way or both.
func (s *Sim) faultPartition() {
	nodes := metaServers + len(s.chunks) + len(s.clients)
	a, oneWay := node(s.rand.IntN(nodes)), s.chance(400)
	part := s.rand.Perm(nodes)[:1+s.rand.IntN(nodes-1)]
	s.note("partition", uint64(a), uint64(len(part)))
	s.cutOff(a, part, oneWay)
}

// faultIsolate cuts one node off from all others.
func (s *Sim) faultIsolate() {
	nodes := metaServers + len(s.chunks) + len(s.clients)
	a := node(s.rand.IntN(nodes))
	s.note("isolation", uint64(a))
	s.cutOff(a, s.rand.Perm(nodes), false)
}

func (s *Sim) cutOff(a node, part []int, oneWay bool) {
	for _, i := range part {
		b := node(i)
		if b == a {
			continue
		}
		s.net.blocked[[2]node{a, b}] = true
		if !oneWay {
			s.net.blocked[[2]node{b, a}] = true
		}
	}
	s.after(s.between(50*time.Millisecond, 8*time.Second), func() {
		for _, i := range part {
			delete(s.net.blocked, [2]node{a, node(i)})
			delete(s.net.blocked, [2]node{node(i), a})
		}
	})
}

func (s *Sim) faultSlow() {
	c, d := s.anyChunk(), s.between(time.Millisecond, 300*time.Millisecond)
	s.note("server is slow", uint64(c.number), uint64(d))
	c.slowness = d
	s.after(s.between(200*time.Millisecond, 5*time.Second), func() { c.slowness = 0 })
}

func (s *Sim) faultWeather() {
	k := kind(s.rand.IntN(int(kinds)))
	s.note("weather", uint64(k))
	s.net.bad[k] = weather{lose: s.rand.IntN(300), repeat: s.rand.IntN(300), delay: s.rand.IntN(500)}
	s.after(s.between(100*time.Millisecond, 4*time.Second), func() { s.net.bad[k] = weather{} })
}

// faultLeader takes the metadata leader away, for a while or at once for another.
func (s *Sim) faultLeader() {
	d := time.Duration(0)
	if s.chance(600) {
		d = s.between(0, 6*time.Second)
	}
	s.meta.stepDown()
	s.note("leader gone")
	s.after(d, func() {
		if s.meta.leader < 0 {
			s.meta.elect(s.rand.IntN(metaServers))
		}
	})
}

func (s *Sim) faultSnapshot() { s.meta.replicas[s.rand.IntN(metaServers)].restart() }

func (s *Sim) faultClientDies() {
	p := s.clients[s.rand.IntN(len(s.clients))]
	s.note("client dies", uint64(p.number))
	p.kill()
	s.after(s.between(10*time.Millisecond, 8*time.Second), p.start)
}

func (s *Sim) faultClientSleeps() {
	p := s.clients[s.rand.IntN(len(s.clients))]
	d := s.between(20*time.Millisecond, 10*time.Second)
	s.note("client stands still", uint64(p.number), uint64(d))
	p.pause(d)
}

// faultDeposedSleeper makes a writer stand still so long that it loses its session,
// and wake up late.
func (s *Sim) faultDeposedSleeper() {
	p := s.clients[s.rand.IntN(rival)]
	d := s.between(sessionTTL, 3*sessionTTL)
	s.note("client stands still for long", uint64(p.number), uint64(d))
	p.pause(d)
}

// faultClock makes a process's clock jump ahead, as a suspended machine's does.
func (s *Sim) faultClock() {
	p := s.clients[s.rand.IntN(len(s.clients))]
	d := s.between(time.Millisecond, 20*time.Second)
	s.note("clock jumps", uint64(p.number), uint64(d))
	p.skew += d
}

// damagedChunk gives a server whose medium may be damaged, nil when none is up.
func (s *Sim) damagedChunk() *chunkServer {
	var list []*chunkServer
	for _, c := range s.chunks {
		if c.damaged && c.up && c.serving {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[s.rand.IntN(len(list))]
}

type shardFile struct {
	path string
	size int64
}

// shardFile chooses a data file of a server whose bytes don't depend on the pace
// of the store's background work, of a shard in a state (0: any).
func (s *Sim) shardFile(c *chunkServer, want store.State) (f shardFile) {
	var list []store.Stat
	c.store.Each(func(st store.Stat) bool {
		if (st.State == store.StateFinalized || s.stores.mode == modeData) && (want == 0 || st.State == want) {
			list = append(list, st)
		}
		return true
	})
	if len(list) == 0 {
		return f
	}
	slices.SortFunc(list, func(a, b store.Stat) int {
		return cmp.Or(cmp.Compare(a.Ref.Segment, b.Ref.Segment), cmp.Compare(a.Ref.Shard, b.Ref.Shard))
	})
	st := list[s.rand.IntN(len(list))]
	return c.shardPath(st.Ref.ShardKey, st.Ref.Generation)
}

// shardPath is a shard's data file.
func (c *chunkServer) shardPath(key layout.ShardKey, generation layout.Generation) (f shardFile) {
	f.path = "shards/" + format.ShardFileName(key, generation)
	if info, err := c.disk.data.Stat(f.path); err == nil {
		f.size = info.Size()
	}
	return f
}

// faultRot flips bits in a data file of a server whose medium may rot.
func (s *Sim) faultRot() {
	c := s.damagedChunk()
	if c == nil {
		return
	}
	for range 1 + s.rand.IntN(6) {
		s.flip(c, s.shardFile(c, 0))
	}
}

func (s *Sim) flip(c *chunkServer, f shardFile) {
	if f.size > 0 && c.disk.data.FlipBit(f.path, s.rand.Int64N(f.size), uint(s.rand.IntN(8))) == nil {
		s.hurt[c.device] = true
		s.note("rot", uint64(c.number))
		s.rare("a bit rots")
	}
}

// faultBadWrite makes a medium lose or misdirect its next write.
func (s *Sim) faultBadWrite() {
	c := s.damagedChunk()
	if c == nil || s.stores.mode != modeData {
		return
	}
	f := s.shardFile(c, 0)
	if f.path == "" {
		return
	}
	if s.chance(500) || f.size < vfsPage {
		_ = c.disk.data.LoseNextWrite(f.path)
	} else {
		_ = c.disk.data.MisdirectNextWrite(f.path, s.rand.Int64N(f.size/vfsPage)*vfsPage)
	}
	s.hurt[c.device] = true
	s.note("bad write", uint64(c.number))
	s.rare("a write lost or misdirected")
}

const vfsPage = 4096

// faultLoss takes a server away for ever.
func (s *Sim) faultLoss() {
	c := s.damagedChunk()
	if c == nil {
		return
	}
	s.note("server lost for ever", uint64(c.number))
	s.rare("a server lost for ever")
	c.crash()
	c.lost = true
}

// faultRotAndDeath flips bits in what is being written, and takes the writers away:
// what rots then is recovered.
func (s *Sim) faultRotAndDeath() {
	c := s.damagedChunk()
	if c == nil || s.stores.mode != modeData {
		return
	}
	for range 4 {
		s.flip(c, s.shardFile(c, store.StateOpen))
	}
	for _, p := range s.clients {
		p.kill()
		s.after(s.between(10*time.Millisecond, 2*time.Second), p.start)
	}
}

// faultDrain empties a device for a while: an administrator's doing.
func (s *Sim) faultDrain() {
	c := s.anyChunk()
	if s.meta.leader < 0 || !c.serving {
		return
	}
	s.note("drain", uint64(c.number))
	s.changeDevice(c, state.DrainDevice)
	s.after(s.between(2*time.Second, 10*time.Second), func() { s.changeDevice(c, state.UndrainDevice) })
}

// faultRebalance has devices evened out: an administrator's doing.
func (s *Sim) faultRebalance() {
	if s.meta.leader < 0 {
		return
	}
	s.note("rebalance")
	id := state.CommandID(s.rand.Uint64() | 1)
	s.meta.spawn(func(f *simclient.Fiber) {
		if _, err := s.meta.propose(f, state.Rebalance{ID: id, On: true}); err == nil {
			s.rare("a rebalance begun")
		}
	})
}

// changeDevice asks the leader until it is done.
func (s *Sim) changeDevice(c *chunkServer, change state.DeviceChange) {
	id := state.CommandID(s.rand.Uint64() | 1)
	var try func()
	try = func() {
		over := false
		s.meta.spawn(func(f *simclient.Fiber) {
			_, err := s.meta.propose(f, state.ChangeDevices{ID: id, Devices: []layout.DeviceID{c.device}, Change: change})
			over = err == nil
		})
		s.after(time.Second, func() {
			if !over {
				try()
			}
		})
	}
	try()
}

// faultOutage takes a server away for so long that its shards are made again, or
// nearly.
func (s *Sim) faultOutage() {
	c := s.anyChunk()
	s.note("server away for long", uint64(c.number))
	c.crash()
	s.after(s.between(rebuildAfter/2, 3*rebuildAfter), c.start)
}

var _ vfs.FS = split{}
