package meta

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"strake/internal/dial"
	"strake/internal/tls"
	"strake/internal/vfs"
	"strake/meta/replica"
	"strake/meta/server"
	"strake/proto/pb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

var (
	quickRaft = replica.Timing{Heartbeat: 250 * time.Millisecond, Commit: 5 * time.Millisecond, RPC: 2 * time.Second, LogFile: 1 << 20}
	quick     = server.Timing{
		SessionTTL: 2 * time.Second, ServerSilence: time.Second, Control: 20 * time.Millisecond, ChunkCall: 2 * time.Second,
	}
)

// addresses gives n free loopback addresses, sorted.
func addresses(t *testing.T, n int) []string {
	t.Helper()
	var list []string
	for range n {
		l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	slices.Sort(list)
	return list
}

// node is one metadata server of a test; its directory outlives its process.
type node struct {
	*Server
	t   *testing.T
	cfg Config
}

func newNode(t *testing.T, addr string, peers ...string) *node {
	return &node{t: t, cfg: Config{
		Listen: addr, Advertise: addr, Peers: peers, FS: vfs.NewMem(vfs.MemOptions{}), Timing: quick, Raft: quickRaft,
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)).With("at", addr), ShardLength: 16 << 20,
	}}
}

func (n *node) start() *node {
	n.t.Helper()
	eventually(n.t, "start "+n.cfg.Listen, func() bool {
		s, err := Start(context.Background(), n.cfg)
		if err != nil {
			if strings.Contains(err.Error(), "in use") {
				return false
			}
			n.t.Fatal(err)
		}
		n.Server = s
		return true
	})
	n.t.Cleanup(func() { n.Close() })
	return n
}

// cell starts n servers that form a cell.
func cell(t *testing.T, n int) []*node {
	t.Helper()
	addrs := addresses(t, n)
	var nodes []*node
	for _, a := range addrs {
		nodes = append(nodes, newNode(t, a, addrs...).start())
	}
	return nodes
}

// api gives a client of the leader of the nodes' cell.
func api(t *testing.T, nodes ...*node) *apiClient {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.cfg.Advertise)
	}
	m, err := dial.NewMeta(strings.Join(addrs, ","), tls.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &apiClient{t: t, meta: m}
}

type apiClient struct {
	t    *testing.T
	meta *dial.Meta
}

// call makes one call at the leader, with patience.
func call[Q, R any](c *apiClient, method func(pb.MetaClient, context.Context, Q, ...grpc.CallOption) (R, error), req Q) (R, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var reply R
	err := c.meta.DoWithin(ctx, patience, func(ctx context.Context, m pb.MetaClient) (err error) {
		reply, err = method(m, ctx, req)
		return err
	})
	return reply, err
}

// must is call for what has to succeed.
func must[Q, R any](c *apiClient, method func(pb.MetaClient, context.Context, Q, ...grpc.CallOption) (R, error), req Q) R {
	c.t.Helper()
	reply, err := call(c, method, req)
	if err != nil {
		c.t.Fatalf("%T: %v", req, err)
	}
	return reply
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

// testWriter sends log lines to the test, as long as it runs.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(string(bytes.TrimSpace(p)))
	}
	return len(p), nil
}
