package replica

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

func TestOnlyAnswersToLaterRequestsConfirmALeader(t *testing.T) {
	voters := configurationOf([]string{"a", "b", "c"})
	yes := &raft.AppendEntriesResponse{Term: 4, Success: true}
	p := newPeers()
	before := p.round()
	round := p.begin()
	if p.confirm("a", voters, round, 4) {
		t.Fatal("confirmed by nobody")
	}
	p.answered("b", time.Now(), before, 4, yes) // found in the socket after a pause
	if p.confirm("a", voters, round, 4) {
		t.Fatal("confirmed by an answer to a request that was sent before")
	}
	p.answered("b", time.Now(), round, 3, &raft.AppendEntriesResponse{Term: 3, Success: true})
	p.answered("c", time.Now(), round, 4, &raft.AppendEntriesResponse{Term: 5})
	if p.confirm("a", voters, round, 4) {
		t.Fatal("confirmed by another term's answer or by a refusal")
	}
	p.answered("b", time.Now(), round, 4, yes)
	if !p.confirm("a", voters, round, 4) {
		t.Fatal("not confirmed by a majority")
	}
}

func TestAServerThatWasAddedAnewHasNoPast(t *testing.T) {
	p := newPeers()
	old := time.Now()
	p.answered("b", old, 0, 4, &raft.AppendEntriesResponse{LastLog: 90})
	p.forget("b")
	p.answered("b", old, 0, 4, &raft.AppendEntriesResponse{LastLog: 90}) // of its earlier life
	if k, ok := p.of("b"); ok {
		t.Fatalf("known as %+v", k)
	}
}

func TestCallersShareRoundsThatBeginAfterThem(t *testing.T) {
	var q rounds
	var wg sync.WaitGroup
	spawn := func(f func()) bool { wg.Go(f); return true }
	gate, begun, runs := make(chan struct{}), make(chan struct{}, 8), 0
	run := func() error {
		runs++
		begun <- struct{}{}
		<-gate
		return nil
	}
	var callers sync.WaitGroup
	join := func() { callers.Go(func() { q.join(t.Context(), spawn, run) }) }
	join()
	<-begun // the first round runs; the next callers must not share it
	for range 5 {
		join()
	}
	eventually(t, "the second round gathers", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.next != nil
	})
	close(gate)
	callers.Wait()
	wg.Wait()
	if runs < 2 || runs > 6 {
		t.Fatalf("%d rounds", runs)
	}
}

func TestALeaderWithoutAMajorityReadsNothing(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	for _, m := range members {
		if m != leader {
			m.stop()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := leader.Read(ctx); err == nil {
		t.Fatal("it read")
	}
	eventually(t, "it knows that it does not lead", func() bool { return errs.KindOf(leader.Read(ctx)) == errs.NotLeader })
}

func TestACommandThatCantBeAppliedEndsTheServer(t *testing.T) {
	m := newMember(t)
	m.start(m.addr)
	leaderOf(t, m).propose("a")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if err := <-m.fatal; errs.KindOf(err) != errs.Version {
			t.Errorf("fatal got %v", err)
		}
		cancel()
	}()
	if _, err := m.Propose(ctx, []byte(poison)); err == nil {
		t.Fatal("it was acknowledged")
	}
	if got := m.list.all(); len(got) != 1 {
		t.Fatalf("got %q", got)
	}
}

func BenchmarkPropose(b *testing.B) {
	benchmark(b, func(m *member, ctx context.Context) error {
		_, err := m.Propose(ctx, []byte("a command of about the size that an allocation has: sixty-four bytes and some"))
		return err
	})
}

func BenchmarkRead(b *testing.B) {
	benchmark(b, func(m *member, ctx context.Context) error { return m.Read(ctx) })
}
