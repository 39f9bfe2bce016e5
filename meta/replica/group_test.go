package replica

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

func TestOneMemberLeadsAndKeepsItsStateOverRestarts(t *testing.T) {
	m := newMember(t)
	m.start(m.addr)
	leaderOf(t, m).propose("a")
	m.propose("b")
	if err := m.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.stop()
	m.start()
	if !m.HasState() || m.Wiped() {
		t.Fatalf("has state %v, wiped %v", m.HasState(), m.Wiped())
	}
	leaderOf(t, m).propose("c")
	if got := m.list.all(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("got %q", got)
	}
}

func TestALeaderThatStopsIsReplacedAndNothingIsLost(t *testing.T) {
	members := group(t, 3)
	first := leaderOf(t, members...)
	first.propose("a")
	first.stop()
	rest := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return m == first })
	second := leaderOf(t, rest...)
	second.propose("b")
	if err := second.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.start()
	eventually(t, "the old leader caught up", func() bool {
		return slices.Equal(first.list.all(), []string{"a", "b"})
	})
}

// TestReplicationIsNotPipelined: see rpcsInFlight for what became of those who tried.
func TestReplicationIsNotPipelined(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	for _, m := range members {
		p, err := leader.net.AppendEntriesPipeline(raft.ServerID(m.addr), raft.ServerAddress(m.addr))
		if !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
			t.Errorf("a pipeline to %s: %v %v", m.addr, p, err)
		}
	}
}

func TestAFollowerRefusesAndNamesTheLeader(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	for _, m := range members {
		if m == leader {
			continue
		}
		eventually(t, "the follower knows the leader", func() bool { return m.Leader() == leader.addr })
		_, err := m.Propose(t.Context(), []byte("x"))
		var e *errs.Error
		if !asError(err, &e) || e.Kind != errs.NotLeader || e.Leader != leader.addr {
			t.Errorf("propose: got %v (%+v), want not-leader naming %s", err, e, leader.addr)
		}
		if err := m.Read(t.Context()); errs.KindOf(err) != errs.NotLeader {
			t.Errorf("read: got %v", err)
		}
	}
}

func TestAFarBehindFollowerTakesASnapshot(t *testing.T) {
	members := make([]*member, 3)
	var addrs []string
	for i := range members {
		m := newMember(t)
		m.timing.TrailingLogs = 4
		members[i], addrs = m, append(addrs, m.addr)
	}
	members[0].start(addrs...)
	members[1].start()
	leader := leaderOf(t, members[0], members[1])
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprint(i))
		leader.propose(want[i])
	}
	if err := leader.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log was cut", func() bool {
		first, err := leader.disk.guard.FirstIndex()
		return err == nil && first > 30
	})
	members[2].start()
	eventually(t, "the third caught up", func() bool { return slices.Equal(members[2].list.all(), want) })
	if members[2].fsm.restored.Load() == 0 {
		t.Error("no snapshot was installed")
	}
	members[2].stop()
	members[2].start()
	eventually(t, "whoever leads takes a command", func() bool { // the leader may have lost touch meanwhile
		_, err := leaderOf(t, members...).Propose(t.Context(), []byte("last"))
		if err != nil && errs.KindOf(err) != errs.NotLeader {
			t.Fatal(err)
		}
		return err == nil
	})
	eventually(t, "it starts from the snapshot", func() bool {
		return slices.Equal(members[2].list.all(), append(want, "last"))
	})
}

func TestAWipedMemberRejoinsAsNew(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	leader.propose("a")
	var lost *member
	for _, m := range members {
		if m != leader {
			lost = m
		}
	}
	eventually(t, "all have it", func() bool { return len(lost.list.all()) == 1 })
	lost.stop()
	for _, dir := range []string{logDir, snapDir} {
		names, _ := lost.fs.List(dir)
		for _, n := range names {
			lost.fs.Remove(dir + "/" + n)
		}
	}
	if err := lost.open(); err != nil {
		t.Fatal(err)
	}
	if !lost.Wiped() || lost.HasState() {
		t.Fatalf("wiped %v, has state %v", lost.Wiped(), lost.HasState())
	}
	if err := lost.Start([]string{lost.addr}); errs.KindOf(err) != errs.Conflict {
		t.Fatalf("a wiped server formed a cell: %v", err)
	}
	if err := leader.RemoveMember(t.Context(), lost.addr); err != nil {
		t.Fatal(err)
	}
	if err := lost.Start(nil); err != nil {
		t.Fatal(err)
	}
	if err := leader.AddMember(t.Context(), lost.addr); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it caught up", func() bool { return slices.Equal(lost.list.all(), []string{"a"}) })
	for _, m := range leader.Members() {
		if !m.Voter {
			t.Errorf("%s has no vote", m.Address)
		}
	}
}

func TestRecoverMakesAGroupOfOneFromASurvivor(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	leader.propose("a")
	for _, m := range members {
		m.stop()
	}
	moved := newMember(t)
	moved.fs = leader.fs
	if err := Recover(moved.options(), []string{moved.addr}); err != nil {
		t.Fatal(err)
	}
	moved.start()
	leaderOf(t, moved).propose("b")
	if got := moved.list.all(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("got %q", got)
	}
}

func TestARemovedMemberEnds(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	eventually(t, "all members known", func() bool { return len(leader.Members()) == 3 })
	if err := leader.RemoveMember(t.Context(), leader.addr); err != nil {
		t.Fatal(err)
	}
	if err := <-leader.fatal; errs.KindOf(err) != errs.Closed {
		t.Fatalf("got %v", err)
	}
}
