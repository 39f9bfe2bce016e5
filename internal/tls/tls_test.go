package tls

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

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

// TestNoProxyStandsBetween dials a server by an address that no proxy rule calls
// local, while the environment names a proxy that is not there.
func TestNoProxyStandsBetween(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	l, err := Policy{Insecure: true}.Listen(t.Context(), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(Policy{}.ServerOptions()...)
	go server.Serve(l)
	defer server.Stop()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conn, err := grpc.NewClient("passthrough:///0.0.0.0:"+port, Policy{}.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Invoke(t.Context(), "/none/none", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("the server was not reached: %v", err)
	}
}
