package tls

import (
	"context"
	"errors"
	"testing"

	"strake/internal/errs"
)

func TestListenLeavesLoopbackOnlyWhenTold(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"} {
		if _, err := (Policy{}).Listen(t.Context(), addr); !errors.Is(err, errs.PermissionDenied) {
			t.Errorf("listen on %s: got %v, want permission-denied", addr, err)
		}
	}
	l, err := Policy{Insecure: true}.Listen(t.Context(), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestPortInUseIsNamed(t *testing.T) {
	l, err := Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := (Policy{}).Listen(t.Context(), l.Addr().String()); !errors.Is(err, errs.Busy) {
		t.Fatalf("got %v, want busy", err)
	}
}

func TestDialSaysWhy(t *testing.T) {
	l, err := Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if _, err := (Policy{}).Dial(t.Context(), addr); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("refused: got %v, want unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Policy{}).Dial(ctx, addr); !errors.Is(err, errs.Canceled) {
		t.Fatalf("canceled: got %v", err)
	}
}
