package disks

import (
	"encoding/gob"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"

	"strake/internal/vfs"
)

// Host serves disks to processes. Close it.
type Host struct {
	dir      string // of the socket
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	disks map[string]*Disk      // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu; nil once closed
}

// NewHost listens on a socket of its own.
func NewHost() (*Host, error) {
	dir, err := os.MkdirTemp("", "disks-") // short: a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	h := &Host{dir: dir, listener: l, disks: map[string]*Disk{}, conns: map[net.Conn]struct{}{}}
	h.done.Go(h.accept)
	return h, nil
}

// Address is what Dial takes.
func (h *Host) Address() string { return h.listener.Addr().String() }

// Add makes a disk of so many bytes, empty.
func (h *Host) Add(name string, bytes int64) *Disk {
	d := newDisk(vfs.NewMem(vfs.MemOptions{Capacity: bytes}))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disks[name] = d
	return d
}

// Close ends all connections and what they serve.
func (h *Host) Close() error {
	err := h.listener.Close()
	h.mu.Lock()
	for c := range h.conns {
		c.Close()
	}
	h.conns = nil
	for _, d := range h.disks {
		d.Heal() // lets go of calls that hang
	}
	h.mu.Unlock()
	h.done.Wait()
	return errors.Join(err, os.RemoveAll(h.dir))
}

func (h *Host) accept() {
	for {
		c, err := h.listener.Accept()
		if err != nil {
			return // closed
		}
		if !h.keep(c) {
			c.Close()
			return
		}
		h.done.Go(func() {
			defer h.drop(c)
			h.serve(c)
		})
	}
}

func (h *Host) keep(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns == nil {
		return false
	}
	h.conns[c] = struct{}{}
	return true
}

func (h *Host) drop(c net.Conn) {
	c.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
}

// serve answers the calls of one connection until it ends.
func (h *Host) serve(c net.Conn) {
	in, out := gob.NewDecoder(c), gob.NewEncoder(c)
	var first hello
	if in.Decode(&first) != nil {
		return
	}
	h.mu.Lock()
	d := h.disks[first.Disk]
	h.mu.Unlock()
	if d == nil {
		return
	}
	s := d.session(first.Session)
	for {
		var q request
		if in.Decode(&q) != nil {
			return
		}
		if a, ok := s.do(&q); !ok || out.Encode(a) != nil {
			return
		}
	}
}
