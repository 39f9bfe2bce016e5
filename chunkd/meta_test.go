package chunkd

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"strake/chunkd/server"
	"strake/internal/errs"
	"strake/internal/tls"
	"strake/proto/pb"
)

const testCell = 0xce11

// fakeMeta is a metadata server that registers whoever comes.
type fakeMeta struct {
	pb.UnimplementedMetaServer
	addr       string
	beats      chan *pb.HeartbeatRequest      // each heartbeat, as far as the test takes them
	registered chan *pb.RegisterServerRequest // each registration

	mu      sync.Mutex
	cell    uint64            // guarded by mu; 0: not known
	formed  bool              // guarded by mu: there is a cell, if only its id were known
	devices map[string]uint64 // guarded by mu: ids by uuid
	forget  bool              // guarded by mu: the next heartbeat is not found
	later   bool              // guarded by mu: a later life of every device is registered
	hangs   bool              // guarded by mu: registrations are not answered
}

// startMeta serves a metadata server until the test ends.
func startMeta(t *testing.T) *fakeMeta {
	t.Helper()
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &fakeMeta{addr: l.Addr().String(), cell: testCell, devices: map[string]uint64{},
		beats: make(chan *pb.HeartbeatRequest), registered: make(chan *pb.RegisterServerRequest, 100)}
	g := grpc.NewServer(server.Typed()...)
	pb.RegisterMetaServer(g, m)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-ended })
	return m
}

func (m *fakeMeta) Peek(context.Context, *pb.PeekRequest) (*pb.PeekReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &pb.PeekReply{Id: m.addr, Cell: m.cell, Formed: m.formed || m.cell != 0}, nil
}

func (m *fakeMeta) RegisterServer(ctx context.Context, r *pb.RegisterServerRequest) (*pb.RegisterServerReply, error) {
	m.mu.Lock()
	if m.hangs {
		m.mu.Unlock()
		m.registered <- r
		<-ctx.Done()
		return nil, ctx.Err()
	}
	defer m.mu.Unlock()
	if r.Cell != m.cell {
		return nil, errs.New(errs.WrongCell, "register server", "this is cell %x", m.cell)
	}
	reply := &pb.RegisterServerReply{Cell: m.cell, Server: 3}
	for _, d := range r.Devices {
		id, ok := m.devices[string(d.Uuid)]
		if !ok {
			id = uint64(len(m.devices) + 5)
			m.devices[string(d.Uuid)] = id
		}
		reply.Devices = append(reply.Devices, &pb.Device{Id: id, Uuid: d.Uuid})
	}
	m.registered <- r
	return reply, nil
}

func (m *fakeMeta) Heartbeat(ctx context.Context, r *pb.HeartbeatRequest) (*pb.HeartbeatReply, error) {
	m.mu.Lock()
	forget, later := m.forget, m.later
	m.forget = false
	m.mu.Unlock()
	if later {
		reply := &pb.HeartbeatReply{IntervalMs: 10}
		for _, d := range r.Devices {
			reply.Refused = append(reply.Refused, &pb.RefusedDevice{Device: d.Id, Kind: uint32(errs.Conflict), Message: "it was replaced", Hint: "empty it"})
		}
		return reply, nil
	}
	if forget {
		return nil, errs.New(errs.NotFound, "heartbeat", "server %d is not registered", r.Server)
	}
	select {
	case m.beats <- r:
	default:
	}
	return &pb.HeartbeatReply{IntervalMs: 10}, nil
}

func (m *fakeMeta) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}
