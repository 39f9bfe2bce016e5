package inprocess

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"strake/chunkd"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
)

const (
	// drain bounds a server's clean stop.
	drain = time.Second
	// portTries bounds the attempts to find ports that nobody takes first.
	portTries = 10
)

// Chunkd is one chunk server with one device. Its addresses and disk stay over
// restarts.
type Chunkd struct {
	Disk *vfs.Mem // its device; another one after a cut of the power

	cell          *Cell
	number        int
	data, control *gate
	server        *chunkd.Server // nil while it is stopped
	rng           *rand.Rand
}

func newChunkd(c *Cell, i int) (s *Chunkd, err error) {
	s = &Chunkd{Disk: vfs.NewMem(vfs.MemOptions{Capacity: c.o.DiskBytes}), cell: c, number: i, rng: rand.New(rand.NewPCG(c.o.Seed, uint64(i)))}
	if s.data, err = newGate(); err == nil {
		s.control, err = newGate()
	}
	return s, err
}

// ID is what the metadata service calls the server.
func (s *Chunkd) ID() layout.ServerID { return s.server.ID() }

func (s *Chunkd) start() error {
	cfg := chunkd.Config{Cell: s.cell.Address, Listen: "127.0.0.1:0", Control: "127.0.0.1:0",
		Domain: fmt.Sprintf("zone/rack/host-%d", s.number), Devices: []string{fmt.Sprintf("device-%d", s.number)},
		Recoverer: s.cell.janitor, Drain: drain, Logger: s.cell.logger(fmt.Sprintf("chunkd %d", s.number)), FS: s.open,
		Upkeep: chunkd.Upkeep{SweepEvery: s.cell.o.SweepEvery}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.cell.o.Direct {
		server, err := chunkd.Start(ctx, cfg)
		s.server = server
		return err
	}
	// Until the server has started nobody knows where it listens, nor of it.
	if err := errors.Join(s.data.open(), s.control.open()); err != nil {
		return err
	}
	cfg.Advertise, cfg.AdvertiseControl = s.data.address, s.control.address
	for try := 1; ; try++ {
		listen, err := freeAddresses(2)
		if err != nil {
			return err
		}
		cfg.Listen, cfg.Control = listen[0], listen[1]
		s.server, err = chunkd.Start(ctx, cfg)
		switch {
		case err == nil:
			s.data.lead(cfg.Listen)
			s.control.lead(cfg.Control)
			return nil
		case !errors.Is(err, errs.Busy) || try == portTries:
			return err
		}
	}
}

func (s *Chunkd) open(string) (vfs.FS, error) {
	if s.cell.o.Disk != nil {
		return s.cell.o.Disk(s.number)
	}
	return s.Disk, nil
}

// stop stops the server in good order.
func (s *Chunkd) stop() (err error) {
	if s.server != nil {
		s.Resume()
		err = s.server.Close()
		s.server = nil
	}
	s.data.close()
	s.control.close()
	return err
}

// Kill ends the server as a signal 9 would: its connections break, and its disk
// keeps all that it wrote.
func (s *Chunkd) Kill() { s.crash(100) }

// CutPower ends the server and its disk at once: of what was not synced, some is
// lost and some is torn.
func (s *Chunkd) CutPower() { s.crash(50) }

func (s *Chunkd) crash(keep int) {
	if s.server == nil {
		return
	}
	after := s.Disk.Crash(s.rng, keep)
	s.data.close()
	s.control.close()
	s.server.Close() // its disk fails: what it says of that does not matter
	s.server, s.Disk = nil, after
}

// Pause stops all bytes to and from the server, as SIGSTOP would, until Resume.
func (s *Chunkd) Pause() {
	s.data.pause()
	s.control.pause()
}

// Resume ends a pause.
func (s *Chunkd) Resume() {
	s.data.resume()
	s.control.resume()
}

// Sever breaks all connections to the server, which goes on and takes new ones; a
// pause ends, and what it held up is lost.
func (s *Chunkd) Sever() {
	s.data.sever()
	s.control.sever()
}

// Restart starts the server again after Kill or CutPower.
func (s *Chunkd) Restart() {
	s.cell.t.Helper()
	s.cell.Eventually("a chunk server starts again", s.start)
}

// Move gives the server other addresses, for its next start.
func (s *Chunkd) Move() {
	s.cell.t.Helper()
	var err error
	if s.data, err = newGate(); err == nil {
		s.control, err = newGate()
	}
	if err != nil {
		s.cell.t.Fatalf("move a chunk server: %v", err)
	}
}

// KillAll kills servers at the same instant.
func KillAll(servers ...*Chunkd) { all(servers, (*Chunkd).Kill) }

// CutPowerAll cuts the power of servers at the same instant.
func CutPowerAll(servers ...*Chunkd) { all(servers, (*Chunkd).CutPower) }

func all(servers []*Chunkd, end func(*Chunkd)) {
	done := make(chan struct{}, len(servers))
	for _, s := range servers {
		go func() {
			end(s)
			done <- struct{}{}
		}()
	}
	for range servers {
		<-done
	}
}
