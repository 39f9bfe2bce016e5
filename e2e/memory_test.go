package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"strake/client"
	"strake/e2e/cluster"
	connect "strake/internal/dial"
	"strake/internal/layout"
	"strake/internal/tls"
	"strake/proto/frame"
	"strake/proto/pb"
)

const (
	// idleConnections are opened to one chunk server, manyShards are created on it.
	idleConnections = 10_000
	manyShards      = 100_000
	// settleFor is for how long the smallest resident memory is looked for: buffers
	// and stacks go back with the garbage collector, which runs now and then.
	settleFor = 25 * time.Second
)

// BenchmarkIdleConnections opens 10,000 connections to a chunk server process, has
// each read a block, and tells by how much its resident memory grew once they were
// quiet; bar 128 MiB. All of them answer a last ping, so all of them were open.
func BenchmarkIdleConnections(b *testing.B) {
	c, cell := startQuiet(b)
	read := aBlock(b, c, cell)
	for b.Loop() {
		pid := c.Chunkds[read.server].Pid()
		first := read.connect(b)
		before := settled(b, pid)
		conns := make([]*idleConn, idleConnections)
		var group errgroup.Group
		group.SetLimit(8)
		for i := range conns {
			group.Go(func() (err error) {
				conns[i], err = read.dial()
				return err
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		after := settled(b, pid)
		b.ReportMetric(float64(after-before)/(1<<20), "MiB-more")
		b.ReportMetric(float64(after)/(1<<20), "MiB")
		for i, conn := range append(conns, first) {
			if err := conn.ping(); err != nil {
				b.Fatalf("connection %d: %v", i, err)
			}
			conn.Close()
		}
	}
}

// BenchmarkManyShards creates 100,000 shards of 64 MiB on a chunk server process and
// tells by how much its resident memory grew; bar 64 MiB. They hold nothing.
func BenchmarkManyShards(b *testing.B) {
	c, cell := startQuiet(b)
	servers, err := cell.Servers(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	id := cellID(b, c)
	pool := connect.NewPool(tls.Policy{})
	defer pool.Close()
	for b.Loop() {
		pid := c.Chunkds[numberOf(b, c, servers[0].Address)].Pid()
		before := settled(b, pid)
		conn, err := pool.Get(servers[0].Control)
		if err != nil {
			b.Fatal(err)
		}
		createMany(b, pb.NewChunkClient(conn), id, servers[0].Devices[0].ID)
		after := settled(b, pid)
		b.ReportMetric(float64(after-before)/(1<<20), "MiB-more")
		b.ReportMetric(float64(after)/(1<<20), "MiB")
	}
}

// createMany creates the shards, many at a time.
func createMany(b *testing.B, server pb.ChunkClient, cell layout.CellID, device uint64) {
	const each = 500
	var group errgroup.Group
	group.SetLimit(4)
	for first := uint64(1 << 40); first < 1<<40+manyShards; first += each {
		group.Go(func() error {
			request := &pb.CreateShardsRequest{}
			for i := range uint64(each) {
				request.Shards = append(request.Shards, &pb.ShardSpec{Cell: uint64(cell), Volume: 1 << 40, Epoch: 1, Length: 4 << 20,
					Geometry: &pb.Geometry{K: 4, M: 2}, Shard: &pb.ShardRef{Segment: first + i, Generation: 1, Device: device}})
			}
			reply, err := server.CreateShards(b.Context(), request)
			if err != nil {
				return err
			}
			for _, r := range reply.Results {
				if r.Kind != 0 {
					return fmt.Errorf("shard of segment %d: %s", r.Shard.Segment, r.Message)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// startQuiet starts a cell of three chunk servers.
func startQuiet(b *testing.B) (*cluster.Cluster, *client.Cell) {
	c := cluster.New(b, cluster.Options{Binary: binary(b), Chunkds: 3})
	cell, err := c.Dial(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cell.Close() })
	return c, cell
}

// settled gives the smallest resident memory of a process, in bytes, within a while.
func settled(b *testing.B, pid int) (least int64) {
	b.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(settleFor); time.Now().Before(end); <-tick.C {
		if n := resident(b, pid); least == 0 || n < least {
			least = n
		}
	}
	return least
}

// resident reads a process's resident memory, in bytes.
func resident(b *testing.B, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// blockRead is a read of one block at one server.
type blockRead struct {
	server  int // its place among the cluster's
	address string
	cell    layout.CellID
	body    frame.ReadBody
}

// aBlock writes a block and finds a shard that has it.
func aBlock(b *testing.B, c *cluster.Cluster, cell *client.Cell) *blockRead {
	b.Helper()
	ctx := b.Context()
	if _, err := cell.CreateVolume(ctx, "v", client.VolumeOptions{Size: 16 << 20, K: 2, M: 1}); err != nil {
		b.Fatal(err)
	}
	v, err := cell.Open(ctx, "v", client.OpenOptions{Write: true})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := v.WriteAtContext(ctx, make([]byte, 2<<20), 0); err != nil {
		b.Fatal(err)
	}
	if err := v.CloseContext(ctx); err != nil {
		b.Fatal(err)
	}
	r := &blockRead{cell: cellID(b, c)}
	var at *pb.Placement
	askMeta(b, c, func(ctx context.Context, m pb.MetaClient) error {
		view, err := m.GetVolume(ctx, &pb.GetVolumeRequest{Name: "v", Tenant: "default"})
		if err != nil {
			return err
		}
		list, err := m.ListSegments(ctx, &pb.ListSegmentsRequest{Volume: view.Volume.Id})
		if err != nil {
			return err
		}
		s := list.Segments[0]
		at = s.Placements[0]
		r.body = frame.ReadBody{Shard: frame.ShardRef{ShardKey: layout.ShardKey{Segment: layout.SegmentID(s.Id)}, Generation: layout.Generation(at.Generation)},
			Ranges: []frame.ReadRange{{Length: layout.BlockSize}}}
		return nil
	})
	servers, err := cell.Servers(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range servers {
		if s.Devices[0].ID == at.Device {
			r.address, r.server = s.Address, numberOf(b, c, s.Address)
		}
	}
	return r
}

// numberOf finds the process that listens on a data address.
func numberOf(b *testing.B, c *cluster.Cluster, address string) int {
	b.Helper()
	for i, p := range c.Chunkds {
		if p.Addr == address {
			return i
		}
	}
	b.Fatalf("no process of the cluster listens on %s", address)
	return 0
}

func cellID(b *testing.B, c *cluster.Cluster) (id layout.CellID) {
	askMeta(b, c, func(ctx context.Context, m pb.MetaClient) error {
		r, err := m.OpenSession(ctx, &pb.OpenSessionRequest{Command: rand.Uint64(), Owner: "benchmark"})
		id = layout.CellID(r.GetCell())
		return err
	})
	return id
}

func askMeta(b *testing.B, c *cluster.Cluster, call func(context.Context, pb.MetaClient) error) {
	b.Helper()
	meta, err := connect.NewMeta(c.Cell, tls.Policy{})
	if err != nil {
		b.Fatal(err)
	}
	defer meta.Close()
	if err := meta.Do(b.Context(), call); err != nil {
		b.Fatal(err)
	}
}

// idleConn is a connection of the data plane, for one goroutine at a time.
type idleConn struct {
	net.Conn
	handle layout.TokenHandle
	id     uint64
}

func (r *blockRead) connect(b *testing.B) *idleConn {
	b.Helper()
	c, err := r.dial()
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// dial connects, says hello and reads the block.
func (r *blockRead) dial() (*idleConn, error) {
	nc, err := net.Dial("tcp", r.address)
	if err != nil {
		return nil, err
	}
	c := &idleConn{Conn: nc}
	hello := frame.HelloBody{Cell: r.cell}
	meta, err := c.call(frame.Request{Kind: frame.Hello}, hello.AppendTo(nil))
	if err != nil {
		return nil, err
	}
	reply, err := frame.DecodeHelloReply(meta)
	if err != nil {
		return nil, err
	}
	c.handle = reply.Handle
	_, err = c.call(frame.Request{Kind: frame.Read, Class: layout.ClassTraining}, r.body.AppendTo(nil))
	return c, err
}

func (c *idleConn) ping() error {
	_, err := c.call(frame.Request{Kind: frame.Ping, Class: layout.ClassInference}, nil)
	return err
}

// call sends a request, throws the reply's payload away and gives its meta.
func (c *idleConn) call(r frame.Request, meta []byte) ([]byte, error) {
	c.id++
	r.ID, r.Token = c.id, c.handle
	out := make([]byte, frame.HeaderLen)
	r.Encode(out, meta)
	if _, err := c.Write(append(out, meta...)); err != nil {
		return nil, err
	}
	head := make([]byte, frame.HeaderLen)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	reply, err := frame.DecodeReply(head)
	if err != nil {
		return nil, err
	}
	rest := make([]byte, reply.Meta+reply.Payload)
	if _, err := io.ReadFull(c, rest); err != nil {
		return nil, err
	}
	if reply.Status != 0 {
		return nil, fmt.Errorf("%v was refused: %v", r.Kind, reply.Status)
	}
	return rest[:reply.Meta], nil
}
