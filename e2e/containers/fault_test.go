package containers

import (
	"errors"
	"sync"
	"testing"
	"time"

	"strake/client"
	"strake/e2e/container"
	"strake/e2e/fault"
)

// TestFaults hurts one cell in many ways, one after another, each under a
// workload of its own and under clients that fight for a volume all along; after
// each it is whole again, and what was noted so far is in order.
func TestFaults(t *testing.T) {
	c := start(t, container.Options{Etcd: true})
	fight := startFight(t, c)
	for _, f := range []struct {
		name string
		do   func(*testing.T, *container.Cell, *load)
	}{
		{"AChunkServerIsKilled", killed},
		{"AChunkServerIsPaused", paused},
		{"AChunkServerIsDisconnected", disconnected},
		{"TheMetadataLeaderIsKilled", leaderKilled},
		{"TheMetadataLeaderIsPaused", leaderPaused},
		{"AWriterDoesNotHearAServer", oneWay},
		{"AServerDoesNotHearTheMetadataLeader", deafServer},
		{"AServerIsHeardByNobody", mute},
		{"TheMetadataLeaderHearsNobody", deafLeader},
		{"TheLeaderAndAFollowerArePartedFromEachOther", partedMetas},
		{"AServersLinkLosesPackets", lossy},
		{"AServersLinkIsSlow", slowed},
		{"AServersLinkIsNarrow", narrowed},
		{"EtcdIsKilled", etcdKilled},
		{"EtcdIsCutOff", etcdCutOff},
		{"AMinorityAndMServersAreLostTogether", minorityAndM},
		{"EveryServerRestartsOneByOne", rolling},
		{"AllAddressesChange", moved},
	} {
		ok := t.Run(f.name, func(t *testing.T) {
			c.Under(t)
			l := startLoad(t, c)
			c.Note("%s", f.name)
			f.do(t, c, l)
			c.WaitUp()
			l.end()
			fight.progress(t, 4)
			fight.check(t)
		})
		if !ok {
			t.FailNow() // the cell is of no use to the others
		}
	}
	t.Run("TheWholeCellRestartsAtOnce", func(t *testing.T) {
		c.Under(t)
		wholeCell(t, c, fight)
	})
}

// some gives n different ones of the nodes.
func some(c *container.Cell, from []*container.Node, n int) []*container.Node {
	var list []*container.Node
	for _, i := range c.Rand.Perm(len(from))[:n] {
		list = append(list, from[i])
	}
	return list
}

func killed(t *testing.T, c *container.Cell, l *load) {
	victim := some(c, c.Chunkds, 1)[0]
	must(t, victim.Kill(t.Context()))
	l.progress(60)
	must(t, victim.Start(t.Context()))
	l.progress(20)
}

func paused(t *testing.T, c *container.Cell, l *load) {
	victim := some(c, c.Chunkds, 1)[0]
	must(t, victim.Pause(t.Context()))
	l.progress(60)
	must(t, victim.Resume(t.Context()))
	l.progress(20)
}

func disconnected(t *testing.T, c *container.Cell, l *load) {
	victim := some(c, c.Chunkds, 1)[0]
	must(t, victim.Disconnect(t.Context()))
	l.progress(60)
	c.WaitStatus("the server is down", func(s client.CellStatus) bool { return s.ServersDown == 1 })
	must(t, victim.Connect(t.Context()))
	l.progress(20)
}

func leaderKilled(t *testing.T, c *container.Cell, l *load) {
	leader := c.Leader()
	must(t, leader.Kill(t.Context()))
	newLeader(t, c, leader)
	l.progress(60)
	must(t, leader.Start(t.Context()))
}

func leaderPaused(t *testing.T, c *container.Cell, l *load) {
	leader := c.Leader()
	must(t, leader.Pause(t.Context()))
	newLeader(t, c, leader)
	l.progress(60)
	must(t, leader.Resume(t.Context()))
}

// newLeader waits until another metadata server leads, and tells how long it took.
func newLeader(t *testing.T, c *container.Cell, old *container.Node) {
	t.Helper()
	begun := time.Now()
	c.Eventually("another leads", func() bool {
		for _, m := range c.Metas {
			if m == old {
				continue
			}
			if out, err := m.Exec(t.Context(), "status", "-o", "json", "--cell", c.Address); out != "" || err == nil {
				return true
			}
		}
		return false
	}, nil)
	took := time.Since(begun)
	t.Logf("another metadata server answered for the cell after %v", took.Round(10*time.Millisecond))
	if *bars && took > 5*time.Second {
		t.Errorf("a new leader took %v", took)
	}
}

// network skips a test where rules can't be set.
func network(t *testing.T) {
	t.Helper()
	if err := fault.Network(); err != nil {
		t.Skipf("*** SKIPPED: no rules in a container's network here: %v ***", err)
	}
}

func oneWay(t *testing.T, c *container.Cell, l *load) {
	network(t)
	victim := some(c, c.Chunkds, 1)[0]
	c.Note("%s does not hear %s", l.node.Name, victim.Name)
	must(t, fault.Deafen(t.Context(), l.node, victim))
	l.progress(300)
	must(t, fault.Heal(t.Context(), l.node))
	l.progress(20)
}

func deafServer(t *testing.T, c *container.Cell, l *load) {
	network(t)
	victim, leader := some(c, c.Chunkds, 1)[0], c.Leader()
	c.Note("%s does not hear %s", victim.Name, leader.Name)
	must(t, fault.Deafen(t.Context(), victim, leader))
	c.WaitStatus("the server is down", func(s client.CellStatus) bool { return s.ServersDown == 1 })
	l.progress(60)
	must(t, fault.Heal(t.Context(), victim))
}

// mute cuts a chunk server off one way: it hears all, and nobody hears it.
func mute(t *testing.T, c *container.Cell, l *load) {
	network(t)
	victim := some(c, c.Chunkds, 1)[0]
	c.Note("nobody hears %s", victim.Name)
	var hearers []*container.Node
	for _, n := range append(c.Servers(), c.Loads()...) {
		if n != victim && n.Running(t.Context()) {
			hearers = append(hearers, n)
			must(t, fault.Deafen(t.Context(), n, victim))
		}
	}
	c.WaitStatus("the server is down", func(s client.CellStatus) bool { return s.ServersDown == 1 })
	l.progress(60)
	for _, n := range hearers {
		must(t, fault.Heal(t.Context(), n))
	}
}

// deafLeader cuts the metadata leader off the other way: its followers hear it, and
// it hears neither them nor anybody else.
func deafLeader(t *testing.T, c *container.Cell, l *load) {
	network(t)
	leader := c.Leader()
	c.Note("%s hears nobody", leader.Name)
	must(t, fault.Lossy(t.Context(), leader, 1))
	newLeader(t, c, leader)
	l.progress(60)
	must(t, fault.Heal(t.Context(), leader))
}

func partedMetas(t *testing.T, c *container.Cell, l *load) {
	network(t)
	leader := c.Leader()
	var follower *container.Node
	for _, m := range some(c, c.Metas, len(c.Metas)) {
		if m != leader {
			follower = m
		}
	}
	c.Note("%s and %s are cut off from each other", leader.Name, follower.Name)
	must(t, fault.Cut(t.Context(), leader, follower))
	l.progress(300)
	must(t, fault.Heal(t.Context(), leader), fault.Heal(t.Context(), follower))
}

func lossy(t *testing.T, c *container.Cell, l *load) {
	network(t)
	victim := some(c, c.Chunkds, 1)[0]
	c.Note("%s loses every fifth packet", victim.Name)
	must(t, fault.Lossy(t.Context(), victim, 0.2))
	l.progress(300)
	must(t, fault.Heal(t.Context(), victim))
}

func slowed(t *testing.T, c *container.Cell, l *load) {
	network(t)
	victim := some(c, c.Chunkds, 1)[0]
	c.Note("%s takes 200 packets a second", victim.Name)
	must(t, fault.Slow(t.Context(), victim, 200))
	l.progress(300)
	must(t, fault.Heal(t.Context(), victim))
}

// narrowed gives a chunk server a link of 4 Mbit/s, on which what it sends queues up.
func narrowed(t *testing.T, c *container.Cell, l *load) {
	network(t)
	victim := some(c, c.Chunkds, 1)[0]
	err := fault.Narrow(t.Context(), victim, 4000)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("*** SKIPPED: this kernel shapes no links ***")
	}
	must(t, err)
	c.Note("%s sends 4 Mbit/s", victim.Name)
	l.progress(300)
	must(t, fault.Widen(t.Context(), victim))
}

// etcdKilled: who runs goes on, a chunk server and a metadata server that start
// meanwhile come back, and who is new finds the cell once etcd is there again.
func etcdKilled(t *testing.T, c *container.Cell, l *load) {
	must(t, c.Etcd.Kill(t.Context()))
	l.progress(60)
	leader, server := c.Leader(), some(c, c.Chunkds, 1)[0]
	must(t, leader.Stop(t.Context()), leader.Start(t.Context()))
	must(t, server.Kill(t.Context()), server.Start(t.Context()))
	l.progress(60)
	c.WaitUp()
	must(t, c.Etcd.Start(t.Context()))
	startLoad(t, c).end()
}

func etcdCutOff(t *testing.T, c *container.Cell, l *load) {
	must(t, c.Etcd.Disconnect(t.Context()))
	l.progress(100)
	must(t, c.Etcd.Connect(t.Context()))
	startLoad(t, c).end()
}

// killAll kills nodes at once.
func killAll(t *testing.T, nodes []*container.Node) {
	t.Helper()
	failed := make([]error, len(nodes))
	var kills sync.WaitGroup
	for i, n := range nodes {
		kills.Go(func() { failed[i] = n.Kill(t.Context()) })
	}
	kills.Wait()
	must(t, failed...)
}

// minorityAndM loses one of three metadata servers and two chunk servers for a
// while, which a 4+2 volume bears.
func minorityAndM(t *testing.T, c *container.Cell, l *load) {
	lost := append(some(c, c.Metas, 1), some(c, c.Chunkds, 2)...)
	killAll(t, lost)
	l.progress(60)
	for _, n := range lost {
		must(t, n.Start(t.Context()))
	}
	l.progress(20)
}

func rolling(t *testing.T, c *container.Cell, l *load) {
	l.rolling = true
	for _, n := range c.Servers() {
		must(t, n.Stop(t.Context()), n.Start(t.Context()))
		c.WaitUp()
		l.progress(10)
	}
}

func moved(t *testing.T, c *container.Cell, l *load) {
	c.Move(t.Context())
	l.progress(60)
}

// wholeCell kills every container at once, the workloads' too.
func wholeCell(t *testing.T, c *container.Cell, fight *fight) {
	l := startLoad(t, c)
	c.Note("kill everything")
	verify := l.crash()
	fight.kill(t.Context(), t)
	killAll(t, append(c.Servers(), c.Etcd))
	for _, n := range append(c.Servers(), c.Etcd) {
		must(t, n.Start(t.Context()))
	}
	c.WaitUp()
	verify()
	fight.restart(t.Context(), t)
	fight.progress(t, 4)
	fight.check(t)
}
