package replica

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"strake/internal/errs"
)

// faulty is a store in memory whose writes fail or hang when told.
type faulty struct {
	*raft.InmemStore
	mu     sync.Mutex
	err    error         // guarded by mu: of the next writes
	hang   chan struct{} // guarded by mu: writes wait for its close
	writes int           // guarded by mu
}

func newFaulty() *faulty { return &faulty{InmemStore: raft.NewInmemStore()} }

func (f *faulty) fault() error {
	f.mu.Lock()
	f.writes++
	err, hang := f.err, f.hang
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return err
}

func (f *faulty) set(err error, hang chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.hang = err, hang
}

func (f *faulty) StoreLogs(l []*raft.Log) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.InmemStore.StoreLogs(l)
}

func (f *faulty) DeleteRange(a, b uint64) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.InmemStore.DeleteRange(a, b)
}

func (f *faulty) Set(k, v []byte) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.InmemStore.Set(k, v)
}

func (f *faulty) Get(k []byte) ([]byte, error) {
	v, err := f.InmemStore.Get(k)
	if err != nil && err.Error() == "not found" {
		return nil, nil
	}
	return v, err
}

func entry(index uint64, data string) *raft.Log {
	return &raft.Log{Index: index, Term: 3, Type: raft.LogCommand, Data: []byte(data)}
}

func TestTheFirstFailedWriteIsFinal(t *testing.T) {
	boom := errors.New("boom")
	writes := map[string]func(*guard) error{
		"StoreLogs":   func(g *guard) error { return g.StoreLogs([]*raft.Log{entry(1, "a")}) },
		"DeleteRange": func(g *guard) error { return g.DeleteRange(1, 1) },
		"Set":         func(g *guard) error { return g.Set([]byte("k"), []byte("v")) },
		"SetUint64":   func(g *guard) error { return g.SetUint64([]byte("k"), 7) },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			below, fatal := newFaulty(), make(chan error, 2)
			g := newGuard(below, time.Minute, func(err error) { fatal <- err }, nil)
			below.set(boom, nil)
			if err := write(g); !errors.Is(err, boom) {
				t.Fatalf("got %v", err)
			}
			if err := <-fatal; !errors.Is(err, boom) || errs.HintOf(err) == "" {
				t.Fatalf("fatal got %v", err)
			}
			below.set(nil, nil)
			before := below.writes
			for again, write := range writes {
				if err := write(g); !errors.Is(err, boom) {
					t.Errorf("%s after the failure: %v", again, err)
				}
			}
			if below.writes != before {
				t.Error("a write reached the disk after the failure")
			}
			select {
			case err := <-fatal:
				t.Errorf("fatal again: %v", err)
			default:
			}
		})
	}
}

func TestAWriteThatHangsEndsTheServerAndIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below, fatal := newFaulty(), make(chan error, 1)
		g := newGuard(below, 5*time.Second, func(err error) { fatal <- err }, nil)
		hang := make(chan struct{})
		below.set(nil, hang)
		begun, result := time.Now(), make(chan error, 1)
		go func() { result <- g.StoreLogs([]*raft.Log{entry(1, "a")}) }()
		err := <-fatal
		if errs.KindOf(err) != errs.Unavailable || time.Since(begun) != 5*time.Second {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
		close(hang)
		if err := <-result; err == nil {
			t.Fatal("the write was acknowledged after all")
		}
	})
}

func TestACorruptEntryIsFoundAtItsRead(t *testing.T) {
	damages := map[string]func(*raft.Log){
		"data":            func(l *raft.Log) { l.Data[0] ^= 1 },
		"data cut":        func(l *raft.Log) { l.Data = l.Data[:1] },
		"term":            func(l *raft.Log) { l.Term++ },
		"type":            func(l *raft.Log) { l.Type = raft.LogNoop },
		"crc":             func(l *raft.Log) { l.Extensions[0] ^= 1 },
		"envelope":        func(l *raft.Log) { l.Extensions = l.Extensions[:4] },
		"another's place": func(l *raft.Log) { *l = *seal(entry(9, "other")); l.Index = 1 },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			below, fatal := newFaulty(), make(chan error, 1)
			g := newGuard(below, time.Minute, func(err error) { fatal <- err }, nil)
			if err := g.StoreLogs([]*raft.Log{entry(1, "data")}); err != nil {
				t.Fatal(err)
			}
			var good raft.Log
			if err := g.GetLog(1, &good); err != nil || string(good.Data) != "data" || good.Extensions != nil {
				t.Fatalf("before: %v %+v", err, good)
			}
			var raw raft.Log
			if err := below.GetLog(1, &raw); err != nil {
				t.Fatal(err)
			}
			raw.Data, raw.Extensions = slices.Clone(raw.Data), slices.Clone(raw.Extensions)
			damage(&raw)
			below.InmemStore.StoreLog(&raw)
			if err := g.GetLog(1, &good); errs.KindOf(err) != errs.Corrupt {
				t.Fatalf("got %v", err)
			}
			if err := <-fatal; errs.KindOf(err) != errs.Corrupt || errs.HintOf(err) == "" {
				t.Fatalf("fatal got %v", err)
			}
		})
	}
}

func TestACorruptVoteIsFoundAtItsRead(t *testing.T) {
	below, fatal := newFaulty(), make(chan error, 1)
	g := newGuard(below, time.Minute, func(err error) { fatal <- err }, nil)
	if err := g.SetUint64([]byte("term"), 4); err != nil {
		t.Fatal(err)
	}
	if v, err := g.GetUint64([]byte("term")); v != 4 || err != nil {
		t.Fatalf("got %d, %v", v, err)
	}
	raw, _ := below.Get([]byte("term"))
	below.InmemStore.Set([]byte("vote"), raw)
	if _, err := g.GetUint64([]byte("vote")); errs.KindOf(err) != errs.Corrupt {
		t.Fatalf("another key's value: %v", err)
	}
	<-fatal
}

func TestALeaderWhoseLogFailsEndsAndAcknowledgesNothing(t *testing.T) {
	var below *breakable
	m := newMember(t)
	m.wrap = func(s store) store {
		below = &breakable{store: s}
		return below
	}
	m.start(m.addr)
	leaderOf(t, m).propose("a")
	below.fail(errors.New("boom"))
	if _, err := m.Propose(t.Context(), []byte("b")); errs.KindOf(err) != errs.Unavailable {
		t.Fatalf("got %v", err)
	}
	if err := <-m.fatal; err == nil {
		t.Fatal("not fatal")
	}
	below.fail(nil)
	if _, err := m.Propose(t.Context(), []byte("c")); errs.KindOf(err) != errs.Unavailable {
		t.Fatalf("after the failure: %v", err)
	}
	m.stop()
	m.wrap = nil
	m.start()
	leaderOf(t, m)
	if got := m.list.all(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("after the restart: %q", got)
	}
}

func TestAFollowerWhoseEntryRottedEndsWithoutAPanic(t *testing.T) {
	members := group(t, 3)
	leader := leaderOf(t, members...)
	leader.propose("a")
	for _, m := range members {
		if m == leader {
			continue
		}
		m.stop()
		m.wrap = func(s store) store { return &breakable{store: s, rotten: "b"} }
		m.start()
		leader.propose("b")
		if err := <-m.fatal; errs.KindOf(err) != errs.Corrupt {
			t.Fatalf("got %v", err)
		}
		return
	}
}

// breakable is a store whose writes fail when told, and which gives a changed
// entry for one.
type breakable struct {
	store
	rotten string

	mu  sync.Mutex
	err error // guarded by mu
}

func (b *breakable) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *breakable) StoreLogs(l []*raft.Log) error {
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.store.StoreLogs(l)
}

func (b *breakable) GetLog(i uint64, l *raft.Log) error {
	err := b.store.GetLog(i, l)
	if err == nil && b.rotten != "" && string(l.Data) == b.rotten {
		l.Data = []byte("rot")
	}
	return err
}
