package transport_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"strake/client/internal/transport"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/frame"
)

func hello(_ frame.Request, _, _ []byte, reply transport.ReplyFunc) {
	body := frame.HelloReply{Server: 1}
	reply(frame.Reply{}, body.AppendTo(nil))
}

func TestPoolConnectsOnceForMany(t *testing.T) {
	var hellos atomic.Int32
	m := transport.NewMem(transport.MemOptions{})
	m.Serve("a", func(r frame.Request, meta, payload []byte, reply transport.ReplyFunc) {
		hellos.Add(1)
		hello(r, meta, payload, reply)
	})
	p := transport.NewPool(m, transport.PoolOptions{})
	defer p.Close()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if _, err := p.GetLane(t.Context(), "a", layout.Class(i%2)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if hellos.Load() != 2 || p.Len() != 2 {
		t.Fatalf("%d hellos on %d lanes, want 2 on 2", hellos.Load(), p.Len())
	}
}

func TestPoolPausesAfterFailureAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMem(transport.MemOptions{})
		p := transport.NewPool(m, transport.PoolOptions{})
		defer p.Close()
		fail := func() {
			t.Helper()
			if _, err := p.Get(t.Context(), "a"); !errors.Is(err, errs.Unavailable) {
				t.Fatalf("got %v, want unavailable", err)
			}
		}
		fail()
		m.Serve("a", hello)
		fail() // pauses
		time.Sleep(50 * time.Millisecond)
		first, err := p.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		m.Stop("a")
		m.Serve("a", hello)
		second, err := p.Get(t.Context(), "a")
		if err != nil || second == first {
			t.Fatalf("a broken connection was not replaced at once: %v", err)
		}
	})
}

func TestPoolGivesUpWithTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMem(transport.MemOptions{})
		m.Serve("a", func(frame.Request, []byte, []byte, transport.ReplyFunc) {})
		p := transport.NewPool(m, transport.PoolOptions{})
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := p.Get(ctx, "a"); !errors.Is(err, errs.Deadline) && errs.KindOf(err) != errs.Deadline {
			t.Fatalf("got %v, want deadline", err)
		}
	})
}

func TestPoolIsBounded(t *testing.T) {
	m := transport.NewMem(transport.MemOptions{})
	for _, a := range []string{"a", "b", "c"} {
		m.Serve(a, hello)
	}
	p := transport.NewPool(m, transport.PoolOptions{Most: 2})
	for _, a := range []string{"a", "b"} {
		if _, err := p.Get(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Get(t.Context(), "c"); !errors.Is(err, errs.Overloaded) {
		t.Fatalf("got %v, want overloaded", err)
	}
	m.Stop("a")
	if _, err := p.Get(t.Context(), "c"); err != nil {
		t.Fatalf("a lane whose connection is gone was not given up: %v", err)
	}
	p.Close()
	if _, err := p.Get(t.Context(), "b"); !errors.Is(err, errs.Closed) {
		t.Fatalf("got %v, want closed", err)
	}
}

func TestIdleConnectionClosesAndIsReplaced(t *testing.T) {
	s := serveRaw(t, func(frame.Request) []byte { return nil })
	tcp := transport.NewTCP(tls.Policy{}, transport.Settings{Idle: 5 * time.Millisecond})
	p := transport.NewPool(tcp, transport.PoolOptions{})
	defer p.Close()
	first, err := p.Get(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if !errors.Is(first.Err(), errs.Unavailable) {
		t.Fatalf("got %v, want unavailable", first.Err())
	}
	second, err := p.Get(t.Context(), s.addr)
	if err != nil || second == first {
		t.Fatalf("the closed connection was not replaced: %v", err)
	}
}
