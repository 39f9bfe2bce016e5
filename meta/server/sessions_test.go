package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"strake/internal/errs"
	"strake/meta/state"
	"strake/proto/pb"
)

func newTestSessions(ids ...sessionID) (*sessions, map[sessionID]int) {
	kept := map[sessionID]int{}
	t := newSessions(6*time.Second, func(id sessionID) { kept[id]++ })
	var all []state.Session
	for _, id := range ids {
		all = append(all, state.Session{ID: id})
	}
	t.begin(5, all)
	return t, kept
}

func down(server uint64) *pb.SessionEvent {
	return &pb.SessionEvent{Kind: pb.SessionEvent_SERVER_DOWN, Server: server}
}

func TestKeepWaitsForEventsAndGivesThemUntilTheyWereSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, kept := newTestSessions(1)
		begun := time.Now()
		if events, err := table.keep(t.Context(), 1, 0, time.Second); len(events) != 0 || err != nil || time.Since(begun) != time.Second {
			t.Fatalf("nothing happened: %v, %v after %v", events, err, time.Since(begun))
		}
		go func() {
			time.Sleep(300 * time.Millisecond)
			table.tell(1, down(7))
			table.tell(1, down(7)) // merged
			table.tell(1, down(8))
		}()
		begun = time.Now()
		first, err := table.keep(t.Context(), 1, 0, time.Second)
		if err != nil || len(first) == 0 || time.Since(begun) != 300*time.Millisecond {
			t.Fatalf("got %v, %v after %v", first, err, time.Since(begun))
		}
		synctest.Wait()
		again, _ := table.keep(t.Context(), 1, 0, 0)
		if len(again) != 2 || again[0].Id != 5<<32+1 || again[1].Server != 8 {
			t.Fatalf("not seen yet: %v", again)
		}
		if rest, _ := table.keep(t.Context(), 1, again[0].Id, 0); len(rest) != 1 || rest[0].Server != 8 {
			t.Fatalf("one seen: %v", rest)
		}
		if kept[1] == 0 {
			t.Error("keep did not renew")
		}
	})
}

func TestKeepWaitsNoLongerThanHalfATTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, _ := newTestSessions(1)
		begun := time.Now()
		table.keep(t.Context(), 1, 0, time.Hour)
		if got := time.Since(begun); got != 3*time.Second {
			t.Fatalf("waited %v", got)
		}
	})
}

func TestTheEndOfASessionOrTermEndsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, _ := newTestSessions(1, 2)
		results := make(chan error, 2)
		for id := range sessionID(2) {
			go func() {
				_, err := table.keep(t.Context(), id+1, 0, time.Second)
				results <- err
			}()
			synctest.Wait()
			if id == 0 {
				table.ended(1)
			} else {
				table.end()
			}
			want := []errs.Kind{errs.LeaseLost, errs.NotLeader}[id]
			if err := <-results; errs.KindOf(err) != want {
				t.Errorf("session %d: got %v, want %v", id+1, err, want)
			}
		}
	})
}

func TestASessionThatNeverFetchesItsEventsEnds(t *testing.T) {
	table, kept := newTestSessions(1)
	for n := range uint64(maxEvents + 1) {
		table.tell(1, down(n+1))
	}
	if _, err := table.keep(context.Background(), 1, 0, 0); errs.KindOf(err) != errs.LeaseLost {
		t.Fatalf("got %v", err)
	}
	if kept[1] != 0 {
		t.Error("it was renewed")
	}
}

// Even the smallest cell grants ten moves a minute: the writer that loses sight of
// one server after another must get away from each.
func TestMovesArePaidFromBothBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, view := newMoveBudget(), state.New().View()
		if wait := m.take(1, view); wait != 0 {
			t.Fatalf("the first move waits %v", wait)
		}
		if wait := m.take(1, view); wait != time.Second {
			t.Fatalf("a volume has one a second: %v", wait)
		}
		for v := range minCellMoves - 1 {
			if wait := m.take(volumeID(v+2), view); wait != 0 {
				t.Fatalf("move %d of the cell waits %v", v+2, wait)
			}
		}
		const each = time.Minute / minCellMoves
		time.Sleep(each / 2)
		if wait := m.take(99, view); wait != each/2 {
			t.Fatalf("past the cell's budget: %v", wait)
		}
		time.Sleep(each / 2)
		if wait := m.take(99, view); wait != 0 {
			t.Fatalf("a tenth of a minute later: %v", wait)
		}
	})
}
