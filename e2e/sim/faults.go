package sim

import (
	"cmp"
	"slices"
	"time"

	"strake/chunkd/format"
	"strake/chunkd/store"
	"strake/internal/vfs"
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
		{6, s.faultClientSleeps}, {3, s.faultClock}, {8, s.faultRot}, {2, s.faultLoss}, {4, s.faultOutage}, {4, s.faultBadWrite}, {5, s.faultDeposedSleeper},
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
	s.after(s.between(10*time.Millisecond, 5*time.Second), c.start)
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

// shardFile chooses a data file of a server whose bytes don't depend on the pace
// of the store's background work.
func (s *Sim) shardFile(c *chunkServer) (path string, size int64) {
	var list []store.Stat
	c.store.Each(func(st store.Stat) bool {
		if st.State == store.StateFinalized || s.stores.mode == modeData {
			list = append(list, st)
		}
		return true
	})
	if len(list) == 0 {
		return "", 0
	}
	slices.SortFunc(list, func(a, b store.Stat) int {
		return cmp.Or(cmp.Compare(a.Ref.Segment, b.Ref.Segment), cmp.Compare(a.Ref.Shard, b.Ref.Shard))
	})
	st := list[s.rand.IntN(len(list))]
	path = "shards/" + format.ShardFileName(st.Ref.ShardKey, st.Ref.Generation)
	if info, err := c.disk.data.Stat(path); err == nil {
		size = info.Size()
	}
	return path, size
}

// faultRot flips bits in a data file of a server whose medium may rot.
func (s *Sim) faultRot() {
	c := s.damagedChunk()
	if c == nil {
		return
	}
	for range 1 + s.rand.IntN(6) {
		path, size := s.shardFile(c)
		if size == 0 {
			continue
		}
		if c.disk.data.FlipBit(path, s.rand.Int64N(size), uint(s.rand.IntN(8))) == nil {
			s.hurt[c.device] = true
			s.note("rot", uint64(c.number))
			s.rare("a bit rots")
		}
	}
}

// faultBadWrite makes a medium lose or misdirect its next write.
func (s *Sim) faultBadWrite() {
	c := s.damagedChunk()
	if c == nil || s.stores.mode != modeData {
		return
	}
	path, size := s.shardFile(c)
	if path == "" {
		return
	}
	if s.chance(500) || size < vfsPage {
		_ = c.disk.data.LoseNextWrite(path)
	} else {
		_ = c.disk.data.MisdirectNextWrite(path, s.rand.Int64N(size/vfsPage)*vfsPage)
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

// faultOutage takes a server away for so long that its shards are made again, or
// nearly.
func (s *Sim) faultOutage() {
	c := s.anyChunk()
	s.note("server away for long", uint64(c.number))
	c.crash()
	s.after(s.between(rebuildAfter/2, 3*rebuildAfter), c.start)
}

var _ vfs.FS = split{}
