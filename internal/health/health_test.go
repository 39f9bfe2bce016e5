package health

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"strake/internal/errs"
	"strake/internal/tls"
)

func TestADaemonIsAliveBeforeItIsReady(t *testing.T) {
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serves atomic.Bool
	g := grpc.NewServer()
	Register(g, func() error {
		if serves.Load() {
			return nil
		}
		return errors.New("not yet")
	})
	var wg sync.WaitGroup
	wg.Go(func() { g.Serve(l) })
	defer wg.Wait()
	defer g.Stop()
	ask := func(service string) error { return Ask(t.Context(), tls.Policy{}, l.Addr().String(), service) }
	if err := ask(Alive); err != nil {
		t.Errorf("alive: %v", err)
	}
	if err := ask(Ready); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("ready before it serves: %v", err)
	}
	serves.Store(true)
	if err := ask(Ready); err != nil {
		t.Errorf("ready: %v", err)
	}
	if err := ask("other"); err == nil {
		t.Error("an unknown service was answered")
	}
}

func TestNobodyThereIsUnavailable(t *testing.T) {
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if err := Ask(t.Context(), tls.Policy{}, addr, Alive); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v", err)
	}
}
