package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strake/internal/discovery/etcdtest"
	"strake/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(t *testing.T, e *etcdtest.Etcd, cell string) Address {
	t.Helper()
	a, err := Parse(e.URL(cell))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func register(t *testing.T, a Address, self string) *Registrar {
	t.Helper()
	r, err := Register(a, self, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func follow(t *testing.T, a Address) *Follower {
	t.Helper()
	f, err := Follow(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// sees waits until a follower knows exactly these servers.
func sees(t *testing.T, f *Follower, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the follower sees %v", want), func() bool { return slices.Equal(f.Known(), want) })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
	}
}

// cells gives the directory's entry of a cell.
func cellOf(t *testing.T, a Address) Cell {
	t.Helper()
	list, err := Cells(t.Context(), a)
	if err != nil && errs.KindOf(err) != errs.Unavailable {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Name == a.Cell {
			return c
		}
	}
	return Cell{}
}

func TestServersAreFollowedAsTheyComeAndGo(t *testing.T) {
	a := at(t, etcdtest.Start(t, "http"), "prod")
	f := follow(t, a)
	register(t, a, "m1:7400")
	two := register(t, a, "m2:7400")
	sees(t, f, "m1:7400", "m2:7400")
	if list, err := f.Addresses(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("got %v, %v", list, err)
	}
	two.Close()
	sees(t, f, "m1:7400")
	register(t, a.Of("other"), "o1:7400")
	register(t, a, "m3:7400")
	sees(t, f, "m1:7400", "m3:7400")
	if got, err := Cells(t.Context(), a); err != nil || len(got) != 2 || got[0].Name != "other" || got[1].Name != "prod" || len(got[1].Addresses) != 2 {
		t.Errorf("the directory: %+v, %v", got, err)
	}
}

func TestTheFoundersAreSettledOnce(t *testing.T) {
	a := at(t, etcdtest.Start(t, "http"), "prod")
	var wait sync.WaitGroup
	lists := make([][]string, 5)
	for i := range lists {
		r := register(t, a, fmt.Sprintf("m%d:7400", i))
		wait.Go(func() { lists[i], _ = r.Founders(t.Context(), 3, func(string) {}) })
	}
	wait.Wait()
	for _, l := range lists {
		if len(l) != 3 || !slices.IsSorted(l) || !slices.Equal(l, lists[0]) {
			t.Fatalf("founders %v", lists)
		}
	}
	late := register(t, a, "z:7400")
	if l, err := late.Founders(t.Context(), 1, func(string) {}); err != nil || !slices.Equal(l, lists[0]) {
		t.Errorf("who comes late reads %v, %v", l, err)
	}
}

func TestFoundersAreWaitedFor(t *testing.T) {
	a := at(t, etcdtest.Start(t, "http"), "prod")
	ctx, cancel := context.WithCancel(t.Context())
	r := register(t, a, "m1:7400")
	_, err := r.Founders(ctx, 2, func(string) { cancel() })
	if errs.KindOf(err) != errs.Canceled {
		t.Errorf("got %v", err)
	}
}

// Whatever etcd goes through, who is known stays known, and is listed again.
func TestEtcdMayDieAndForget(t *testing.T) {
	e := etcdtest.Start(t, "http")
	a := at(t, e, "prod")
	r := register(t, a, "m1:7400")
	r.SetCell(7)
	f := follow(t, a)
	sees(t, f, "m1:7400")
	eventually(t, "the cell's id is there", func() bool { return cellOf(t, a).ID == 7 })
	e.Kill()
	if list, err := f.Addresses(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("with etcd dead: %v, %v", list, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := follow(t, a).Addresses(ctx); errs.KindOf(err) != errs.Unavailable || errs.HintOf(err) == "" {
		t.Errorf("who asks a dead etcd first: %v", err)
	}
	e.Forget()
	e.Restart()
	eventually(t, "the server is listed again, with the cell's id", func() bool {
		c := cellOf(t, a)
		return c.ID == 7 && slices.Equal(c.Addresses, []string{"m1:7400"})
	})
	register(t, a, "m2:7400")
	eventually(t, "the old follower sees who came after", func() bool {
		f.ResolveNow()
		return slices.Equal(f.Known(), []string{"m1:7400", "m2:7400"})
	})
}

func TestAPausedEtcdStopsNobody(t *testing.T) {
	e := etcdtest.Start(t, "http")
	a := at(t, e, "prod")
	r := register(t, a, "m1:7400")
	f := follow(t, a)
	sees(t, f, "m1:7400")
	e.Pause()
	f.ResolveNow()
	if list, err := f.Addresses(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
	f.Close()
	e.Resume()
	r.Close()
}

// TestOneEtcdHostThatAnswersIsEnough names several hosts: at one nobody listens, one is
// accepted and never answered.
func TestOneEtcdHostThatAnswersIsEnough(t *testing.T) {
	e := etcdtest.Start(t, "http")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // whose connections wait in the queue
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := gone.Addr().String()
	gone.Close()
	for i, first := range []string{dead, silent.Addr().String(), dead + "," + silent.Addr().String()} {
		a, err := Parse(strings.Replace(e.URL(fmt.Sprint("cell", i)), "etcd://", "etcd://"+first+",", 1))
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, a)
		r := register(t, a, "m1:7400")
		sees(t, f, "m1:7400")
		if c := cellOf(t, a); len(c.Addresses) != 1 {
			t.Errorf("the directory through %v: %+v", a, c)
		}
		r.Close()
	}
}

func TestANameBelongsToTheFirstCell(t *testing.T) {
	a := at(t, etcdtest.Start(t, "http"), "prod")
	one := register(t, a, "m1:7400")
	one.SetCell(1)
	eventually(t, "the first cell has the name", func() bool { return cellOf(t, a).ID == 1 })
	other := register(t, a, "x1:7400")
	eventually(t, "the other is listed", func() bool { return len(cellOf(t, a).Addresses) == 2 })
	other.SetCell(2)
	eventually(t, "the other is off the list", func() bool { return slices.Equal(cellOf(t, a).Addresses, []string{"m1:7400"}) })
	if id := cellOf(t, a).ID; id != 1 {
		t.Errorf("the name went to cell %d", id)
	}
}

func TestACellWithoutANameIsRefused(t *testing.T) {
	a, _ := Parse("etcd://127.0.0.1:1")
	if _, err := Register(a, "m:1", slog.New(slog.DiscardHandler)); errs.KindOf(err) != errs.InvalidArgument {
		t.Errorf("register: %v", err)
	}
	if _, err := Follow(a); errs.KindOf(err) != errs.InvalidArgument {
		t.Errorf("follow: %v", err)
	}
}

func TestFilesThatAreMissingAreNamed(t *testing.T) {
	for _, text := range []string{"etcd://a/c?ca=/nowhere/ca.pem", "etcd://a/c?user=u&password-file=/nowhere/p"} {
		a, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Follow(a); errs.KindOf(err) != errs.InvalidArgument {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
