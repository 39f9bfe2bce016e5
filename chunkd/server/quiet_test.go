package server

import (
	"bufio"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

// serveInMemory serves a store in the test's bubble; the function connects.
func serveInMemory(t *testing.T, limits Limits, d Device) (*Server, func() *peer) {
	s := New(Config{Cell: testCell, Server: 3, Limits: limits, Devices: []Device{d}})
	l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close(context.Background()) })
	return s, func() *peer {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		l.accept <- theirs
		p := &peer{t: t, nc: ours, r: bufio.NewReaderSize(ours, 1<<20)}
		p.hello()
		return p
	}
}

func TestQuietConnectionsHoldNothingAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		shard(t, store, ref(9, 0), 4<<20)
		s, connect := serveInMemory(t, Limits{Idle: 20 * time.Second}, Device{ID: testDevice, Store: store})
		p := connect()
		var all []byte
		for range 20 { // more than the small buffer holds
			all = append(all, p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)...)
		}
		go p.nc.Write(all)
		for range 20 {
			p.receive()
		}
		synctest.Wait()
		quiet := time.Now()
		p.closed()
		if took := time.Since(quiet); took != linger+20*time.Second { // the first wait ends with the pooled buffer
			t.Errorf("closed after %v, want %v", took, linger+20*time.Second)
		}
		synctest.Wait()
		if n := s.Counters.Connections.Load(); n != 0 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestTheWaitAtTheGateIsNotThePeersSilence: however long the device takes no more,
// the writers that it makes wait keep their connections.
func TestTheWaitAtTheGateIsNotThePeersSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.holdAppend = make(chan struct{})
		shard(t, store, ref(9, 0), 16<<20)
		s, connect := serveInMemory(t, Limits{}, Device{ID: testDevice, Store: store, Sched: sched.NewQoS(mclock.Options{GateBytes: 1 << 20})})
		var writers []*peer
		for i := range 3 {
			p := connect()
			meta, payload := unit(ref(9, 0), layout.Seq(i+1), layout.ShardOffset(i)<<20, 1<<20)
			go p.nc.Write(p.encode(frame.Request{Kind: frame.Append, Epoch: 1, Class: layout.ClassCheckpoint}, meta, payload))
			writers = append(writers, p)
		}
		time.Sleep(5 * time.Minute)
		if f := flowOf(s.Stats()[0].Stats, layout.ClassCheckpoint); f.AtGate != 2 {
			t.Errorf("%d at the gate, want 2", f.AtGate)
		}
		close(store.holdAppend)
		for i, p := range writers {
			if rep, _, _ := p.receive(); rep.Status != errs.OK {
				t.Errorf("writer %d: %v", i, rep.Status)
			}
		}
	})
}

// TestAPayloadMayPauseAndNotEnd: a peer that sends half a payload is waited for as
// long as one that sends nothing, and no longer.
func TestAPayloadMayPauseAndNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		shard(t, store, ref(9, 0), 16<<20)
		s, connect := serveInMemory(t, Limits{Idle: 20 * time.Second}, Device{ID: testDevice, Store: store})
		meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
		p := connect()
		all := p.encode(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		half := len(all) / 2
		p.nc.Write(all[:half])
		time.Sleep(15 * time.Second)
		go p.nc.Write(all[half:])
		if rep, _, _ := p.receive(); rep.Status != errs.OK {
			t.Errorf("%v", rep.Status)
		}
		p.nc.Write(all[:half])
		time.Sleep(25 * time.Second)
		p.closed()
		synctest.Wait()
		if !s.memory.try(s.limits.Memory) {
			t.Error("the half payload is still in memory")
		}
	})
}
