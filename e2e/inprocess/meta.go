package inprocess

import (
	"context"
	"net"
	"sync"

	"strake/internal/vfs"
	"strake/meta"
)

// Meta is one metadata server. Its address and disk stay over restarts.
type Meta struct {
	cell    *Cell
	address string
	peers   []string
	disk    vfs.FS

	mu     sync.Mutex
	server *meta.Server // guarded by mu; nil while it is stopped
}

// Stop stops the server in good order.
func (m *Meta) Stop() error {
	m.mu.Lock()
	s := m.server
	m.server = nil
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close()
}

// Start starts it again after Stop.
func (m *Meta) Start() {
	m.cell.t.Helper()
	m.cell.Eventually("the metadata server starts again", m.start)
}

func (m *Meta) start() error {
	cfg := meta.Config{
		Listen: m.address, FS: m.disk, ShardLength: m.cell.o.ShardLength,
		Timing: m.cell.o.Timing, Raft: quickRaft, Logger: m.cell.logger("meta " + m.address),
	}
	if len(m.peers) > 1 {
		cfg.Advertise, cfg.Peers = m.address, m.peers
	}
	s, err := meta.Start(context.Background(), cfg)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.server = s
	m.mu.Unlock()
	return nil
}

// settle keeps the port that the server was given.
func (m *Meta) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.address = m.server.Addr().String()
	m.peers = []string{m.address}
}

// freeAddresses gives loopback addresses that nobody listens on.
func freeAddresses(n int) (list []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}
