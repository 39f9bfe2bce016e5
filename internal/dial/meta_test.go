package dial

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"strake/internal/tls"
	"strake/proto/pb"
)

// leader answers, until it hangs: then calls wait until they are given up.
type leader struct {
	pb.UnimplementedMetaServer
	hangs chan struct{} // closed when it begins to
}

func (l *leader) Peek(ctx context.Context, _ *pb.PeekRequest) (*pb.PeekReply, error) {
	select {
	case <-l.hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return &pb.PeekReply{}, nil
	}
}

func serve(t *testing.T) (l *leader, addr string) {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = &leader{hangs: make(chan struct{})}
	s := grpc.NewServer()
	pb.RegisterMetaServer(s, l)
	go s.Serve(at)
	t.Cleanup(s.Stop)
	return l, at.Addr().String()
}

// TestACallDoesNotBeginWhereTheLastOneHung: heartbeats and renewals have so little
// time each that one hung attempt takes all of it.
func TestACallDoesNotBeginWhereTheLastOneHung(t *testing.T) {
	first, a := serve(t)
	_, b := serve(t)
	m, err := NewMeta(a+","+b, tls.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	peek := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return m.DoWithin(ctx, within, func(ctx context.Context, c pb.MetaClient) error {
			_, err := c.Peek(ctx, &pb.PeekRequest{})
			return err
		})
	}
	if err := peek(time.Minute); err != nil {
		t.Fatal(err)
	}
	close(first.hangs)
	if err := peek(50 * time.Millisecond); err == nil {
		t.Fatal("a server that hangs answered")
	}
	for try := 1; ; try++ { // the first attempt may have begun nowhere, on a busy machine
		err := peek(5 * time.Second)
		if err == nil {
			return
		}
		if try == 3 {
			t.Fatalf("the other server was not asked: %v", err)
		}
	}
}
