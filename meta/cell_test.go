package meta

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"strake/internal/dial"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/proto/pb"
)

func TestOneServerFormsACellAndKeepsItOverRestarts(t *testing.T) {
	n := cell(t, 1)[0]
	c := api(t, n)
	first := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if first.Cell == 0 || first.ShardLength != 16<<20 {
		t.Fatalf("status %v", first)
	}
	session := must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 1, Owner: "a"})
	n.Close()
	n.start()
	again := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if again.Cell != first.Cell {
		t.Fatalf("after the restart: %v", again)
	}
	must(c, pb.MetaClient.KeepSession, &pb.KeepSessionRequest{Session: session.Session})
}

func TestThreeServersFormOneCellAndOutliveTheirLeader(t *testing.T) {
	nodes := cell(t, 3)
	c := api(t, nodes...)
	st := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if len(st.Members) != 3 {
		t.Fatalf("members %v", st.Members)
	}
	req := &pb.OpenSessionRequest{Command: 7, Owner: "a"}
	made := must(c, pb.MetaClient.OpenSession, req)
	var dead *node
	for _, n := range nodes {
		if n.replica.Leading() == nil {
			dead = n
			n.Close()
			break
		}
	}
	again := must(c, pb.MetaClient.OpenSession, req) // as after a lost reply
	if again.Session != made.Session {
		t.Fatalf("the repeat opened session %d, not %d", again.Session, made.Session)
	}
	after := must(c, pb.MetaClient.Status, &pb.StatusRequest{})
	if after.Cell != st.Cell {
		t.Fatalf("status %v", after)
	}
	eventually(t, "the dead server is reported", func() bool {
		for _, p := range must(c, pb.MetaClient.Status, &pb.StatusRequest{}).Problems {
			if strings.Contains(p, dead.cfg.Advertise) {
				return true
			}
		}
		return false
	})
	dead.start()
	eventually(t, "the old leader is back", func() bool { return dead.machine.View().Cell().ID != 0 })
}

// A chunk server formats its devices with the id that Peek gives.
func TestPeekGivesTheCellOrNothing(t *testing.T) {
	nodes := cell(t, 3)
	seen := map[uint64]bool{}
	eventually(t, "all know the cell", func() bool {
		known := 0
		for _, n := range nodes {
			p := n.peek(nil)
			seen[p.Cell] = true
			if p.Cell != 0 && !p.Formed {
				t.Errorf("a cell, and not formed: %v", p)
			}
			if n.machine.View().Cell().ID != 0 {
				known++
			}
		}
		return known == len(nodes)
	})
	delete(seen, 0)
	delete(seen, uint64(nodes[0].machine.View().Cell().ID))
	if len(seen) != 0 {
		t.Errorf("peek gave %v as well", seen)
	}
}

func TestAFollowerPointsToTheLeader(t *testing.T) {
	nodes := cell(t, 3)
	must(api(t, nodes...), pb.MetaClient.Status, &pb.StatusRequest{})
	for _, n := range nodes {
		if n.replica.Leading() == nil {
			continue
		}
		eventually(t, "the follower knows the leader", func() bool {
			pool := dial.NewPool(tls.Policy{})
			defer pool.Close()
			conn, _ := pool.Get(n.cfg.Advertise)
			_, err := pb.NewMetaClient(conn).Status(t.Context(), &pb.StatusRequest{})
			var e *errs.Error
			return errors.As(pb.FromStatus(err), &e) && e.Kind == errs.NotLeader && e.Leader != "" && e.Leader != n.cfg.Advertise
		})
	}
}

func TestACellIsFormedByOneThreeOrFiveServers(t *testing.T) {
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	list := []string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1"}
	for n := range len(list) + 1 {
		_, err := Config{Advertise: "a:1", Peers: list[:n]}.check(bound)
		if good := n == 0 || n == 1 || n == 3 || n == 5; good != (err == nil) {
			t.Errorf("%d peers: %v", n, err)
		}
		if err != nil && (errs.KindOf(err) != errs.InvalidArgument || errs.HintOf(err) == "") {
			t.Errorf("%d peers: %v, which does not say what to do", n, err)
		}
	}
	if _, err := (Config{Advertise: "a:1", Directory: "etcd://e/c", Bootstrap: 2}).check(bound); errs.KindOf(err) != errs.InvalidArgument {
		t.Errorf("two servers that etcd lists: %v", err)
	}
}

func TestServersWithDifferentPeersFormNoCell(t *testing.T) {
	a := addresses(t, 4)
	one := newNode(t, a[0], a[0], a[1], a[3]).start()
	newNode(t, a[1], a[:3]...).start()
	newNode(t, a[2], a[:3]...).start()
	eventually(t, "the difference is named", func() bool { return strings.Contains(one.waiting(), "other peers") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := api(t, one).meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.Status(ctx, &pb.StatusRequest{})
		return err
	})
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "other peers") {
		t.Fatalf("got %v", err)
	}
}

func TestAnEmptiedServerStaysOutUntilItIsAddedAsNew(t *testing.T) {
	for _, marker := range []bool{true, false} {
		name := map[bool]string{true: "state lost", false: "disk lost"}[marker]
		t.Run(name, func(t *testing.T) {
			nodes := cell(t, 3)
			c := api(t, nodes...)
			must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 1, Owner: "a"})
			var lost *node
			for _, n := range nodes {
				if n.replica.Leading() != nil {
					lost = n
				}
			}
			eventually(t, "it knows the cell", func() bool { return len(lost.machine.View().Sessions()) == 1 })
			lost.Close()
			if marker {
				for _, dir := range []string{"log", "snapshots"} {
					names, _ := lost.cfg.FS.List(dir)
					for _, f := range names {
						lost.cfg.FS.Remove(dir + "/" + f)
					}
				}
			} else {
				lost.cfg.FS = vfs.NewMem(vfs.MemOptions{})
			}
			lost.start()
			eventually(t, "it says what to do", func() bool { return strings.Contains(lost.waiting(), "strake meta rm") })
			self := lost.cfg.Advertise
			must(c, pb.MetaClient.RemoveMember, &pb.RemoveMemberRequest{Address: self})
			must(c, pb.MetaClient.AddMember, &pb.AddMemberRequest{Address: self})
			eventually(t, "it caught up", func() bool { return len(lost.machine.View().Sessions()) == 1 })
			for _, m := range must(c, pb.MetaClient.Status, &pb.StatusRequest{}).Members {
				if m.Address == self && !m.Voter {
					t.Errorf("%v has no vote", m)
				}
			}
		})
	}
}

func TestANewServerIsAdded(t *testing.T) {
	a := addresses(t, 2)
	first := newNode(t, a[0]).start()
	c := api(t, first)
	cellID := must(c, pb.MetaClient.Status, &pb.StatusRequest{}).Cell
	second := newNode(t, a[1], a[0]).start()
	eventually(t, "it says what to do", func() bool { return strings.Contains(second.waiting(), "strake meta add") })
	must(c, pb.MetaClient.AddMember, &pb.AddMemberRequest{Address: a[1]})
	eventually(t, "it knows the cell", func() bool { return uint64(second.machine.View().Cell().ID) == cellID })
}

func TestAPortInUseIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Start(t.Context(), Config{Listen: l.Addr().String(), FS: vfs.NewMem(vfs.MemOptions{})})
	if errs.KindOf(err) != errs.Busy {
		t.Fatalf("got %v", err)
	}
}

func TestADirectoryInUseIsRefused(t *testing.T) {
	n := cell(t, 1)[0]
	_, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", FS: n.cfg.FS})
	if errs.KindOf(err) != errs.Busy {
		t.Fatalf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Run(ctx, Config{Listen: "127.0.0.1:0", Dir: t.TempDir(), Raft: quickRaft}) }()
	cancel()
	if err := <-done; err != nil && errs.KindOf(err) != errs.Canceled && errs.KindOf(err) != errs.InvalidArgument {
		t.Fatal(err)
	}
}
