package meta

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/proto/pb"
)

// TestAnOldCopyOfADirectoryIsRefused: a member's directory is copied, the member goes
// on, and later the copy is put back. It has forgotten what it acknowledged and voted
// for, so it must not take part; as a new member it may.
func TestAnOldCopyOfADirectoryIsRefused(t *testing.T) {
	nodes := cell(t, 3)
	c := api(t, nodes...)
	must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 1, Owner: "before"})
	var victim *node
	for _, n := range nodes {
		if n.replica.Leading() != nil {
			victim = n
		}
	}
	self := victim.cfg.Advertise
	eventually(t, "it knows the session", func() bool { return len(victim.machine.View().Sessions()) == 1 })
	victim.Close()
	old := victim.cfg.FS.(*vfs.Mem).CrashClone(nil, 0)
	must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 2, Owner: "after"})
	victim.start()
	_, life := victim.replica.Life()
	onRecord := func() bool {
		return slices.ContainsFunc(nodes, func(n *node) bool {
			record := n.machine.View().Cell()
			return n != victim && record.Member(self).Life >= life
		})
	}
	eventually(t, "its new life is on record", onRecord)
	victim.Close()

	victim.cfg.FS = old
	victim.start()
	err := <-victim.Fatal()
	if errs.KindOf(err) != errs.Corrupt || !strings.Contains(err.Error(), "old copy") || !strings.Contains(errs.HintOf(err), "strake meta rm") {
		t.Fatalf("got %v, hint %q", err, errs.HintOf(err))
	}
	victim.Close()

	must(c, pb.MetaClient.RemoveMember, &pb.RemoveMemberRequest{Address: self})
	victim.cfg.FS = vfs.NewMem(vfs.MemOptions{})
	victim.start()
	must(c, pb.MetaClient.AddMember, &pb.AddMemberRequest{Address: self})
	eventually(t, "it caught up as a new member", func() bool { return len(victim.machine.View().Sessions()) == 2 })
	for range 2 { // and it can be started again like any other
		victim.Close()
		victim.start()
		eventually(t, "it is back", func() bool { return victim.machine.View().Cell().ID != 0 })
	}
}

// TestAServerThatStartsIsNotToldOfItself: as long as it asks whether its directory is
// an old copy it does not say how old that is. Else the leader records it at once, and
// the server hears of a life that the cell has seen: its own.
func TestAServerThatStartsIsNotToldOfItself(t *testing.T) {
	nodes := cell(t, 3)
	must(api(t, nodes...), pb.MetaClient.Status, &pb.StatusRequest{})
	for _, n := range nodes {
		n.Close()
	}
	for _, n := range nodes[1:] { // there, and answering nothing
		l, err := tls.Policy{}.Listen(t.Context(), n.cfg.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	n := nodes[0].start()
	peeks := 0
	eventually(t, "it has asked in vain", func() bool {
		before, said, after := n.waiting(), n.peek(&pb.PeekRequest{}), n.waiting()
		asks := strings.Contains(before, "old copy") && before == after
		if peeks++; asks && said.GetDirectory() != 0 {
			t.Fatalf("it asks, and says already that it is directory %x at age %d", said.GetDirectory(), said.GetLife())
		}
		return said.GetDirectory() != 0
	})
	if peeks < 2 {
		t.Error("nobody looked while it asked")
	}
}

// TestAMinorityOfMetadataServersMayBeLost: with one of three gone commands are
// acknowledged, and when it comes back it has them; with two gone nothing is.
func TestAMinorityOfMetadataServersMayBeLost(t *testing.T) {
	nodes := cell(t, 3)
	c := api(t, nodes...)
	must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 1, Owner: "a"})
	nodes[0].Close()
	must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 2, Owner: "b"})
	nodes[1].Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := c.meta.Do(ctx, func(ctx context.Context, m pb.MetaClient) error {
		_, err := m.OpenSession(ctx, &pb.OpenSessionRequest{Command: 3, Owner: "c"})
		return err
	})
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), nodes[0].cfg.Advertise) {
		t.Fatalf("two of three are gone: got %v", err)
	}
	nodes[0].start()
	nodes[1].start()
	must(c, pb.MetaClient.OpenSession, &pb.OpenSessionRequest{Command: 3, Owner: "c"})
	for _, n := range nodes {
		eventually(t, "all three know all sessions", func() bool { return len(n.machine.View().Sessions()) == 3 })
	}
}
