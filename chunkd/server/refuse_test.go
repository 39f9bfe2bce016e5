package server

import (
	"bytes"
	"context"
	"math/rand"
	"sync"
	"testing"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
)

func TestHelloChecksTheCell(t *testing.T) {
	c := start(t, Limits{})
	p := c.dial(t)
	p.refused(errs.WrongCell, frame.Request{Kind: frame.Hello}, (&frame.HelloBody{Cell: 1}).AppendTo(nil), nil)
	p.refused(errs.Unauthenticated, frame.Request{Kind: frame.Ping, Token: 1}, nil, nil)
	p = c.connect(t)
	p.refused(errs.Unauthenticated, frame.Request{Kind: frame.Ping, Token: p.handle + 1}, nil, nil)
	p.refused(errs.Version, frame.Request{Kind: frame.Ping, Flags: 0x40}, nil, nil)
	rep, meta, _ := p.call(frame.Request{Kind: frame.Hello}, (&frame.HelloBody{Cell: testCell}).AppendTo(nil), nil)
	h, _ := frame.DecodeHelloReply(meta)
	if rep.Status != errs.OK || h.Handle == p.handle {
		t.Errorf("a second hello: %v, handle %d", rep.Status, h.Handle)
	}
}

func TestBeforeHelloNobodyGetsMemory(t *testing.T) {
	c := start(t, Limits{})
	meta, payload := unit(ref(9, 0), 1, 0, 4096)
	for name, send := range map[string]func(*peer){
		"a payload":  func(p *peer) { p.send(frame.Request{Kind: frame.Append}, meta, payload) },
		"large meta": func(p *peer) { p.send(frame.Request{Kind: frame.Read}, make([]byte, 8192), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			p := c.dial(t)
			send(p)
			p.closed()
		})
	}
}

// TestMalformedFramesEndOnlyTheirConnection also counts them.
func TestMalformedFramesEndOnlyTheirConnection(t *testing.T) {
	c := start(t, Limits{})
	bystander := c.connect(t)
	spoil := map[string]func(b []byte) []byte{
		"magic":           func(b []byte) []byte { b[0]++; return b },
		"version":         func(b []byte) []byte { b[2]++; return b },
		"unknown kind":    func(b []byte) []byte { b[3] = 99; return b },
		"a reply":         func(b []byte) []byte { b[3] |= 0x80; return b },
		"huge meta":       func(b []byte) []byte { b[6], b[7] = 0xff, 0x7f; return b },
		"huge payload":    func(b []byte) []byte { b[10], b[11] = 0xff, 0x7f; return b },
		"payload on read": func(b []byte) []byte { b[9] = 0x10; return b },
		"checksum":        func(b []byte) []byte { b[60]++; return b },
		"meta":            func(b []byte) []byte { b[70]++; return b },
	}
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			before := c.Counters.BadFrames.Load()
			p := c.connect(t)
			p.nc.Write(f(p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)))
			p.closed()
			waitFor(t, func() bool { return c.Counters.BadFrames.Load() == before+1 })
		})
	}
	for _, cut := range []int{1, 64, 80} {
		p := c.connect(t)
		p.nc.Write(p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)[:cut])
		p.nc.(interface{ CloseWrite() error }).CloseWrite()
		p.closed()
	}
	if rep, _, _ := bystander.call(frame.Request{Kind: frame.Ping}, nil, nil); rep.Status != errs.OK {
		t.Errorf("the bystander got %v", rep.Status)
	}
}

// TestNoiseNeverHarms feeds damaged streams of requests, from a fixed seed.
func TestNoiseNeverHarms(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		r := rand.New(rand.NewSource(1))
		for range 60 {
			p := c.connect(t)
			var all []byte
			for seq := range layout.Seq(4) {
				meta, payload := unit(ref(9, 0), seq+1, 0, 4096<<r.Intn(6))
				all = append(all, p.encode(frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)...)
				all = append(all, p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)...)
			}
			all[r.Intn(len(all))] ^= byte(1 << r.Intn(8))
			p.nc.Write(all[:r.Intn(len(all))])
			p.nc.(interface{ CloseWrite() error }).CloseWrite()
			for {
				if _, _, _, err := p.next(); err != nil {
					break
				}
			}
			p.nc.Close()
		}
		waitFor(t, func() bool { return c.Counters.Connections.Load() == 0 })
	})
}

func TestRefusalsLeaveTheStreamInStep(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	p := c.connect(t)
	for _, n := range []int{4096, 2 << 20} {
		meta, payload := unit(ref(8, 0), 1, 0, n)
		p.refused(errs.NotHere, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		p.refused(errs.Unauthenticated, frame.Request{Kind: frame.Append, Epoch: 1, Token: 99}, meta, payload)
		p.refused(errs.InvalidArgument, frame.Request{Kind: frame.Append, Epoch: 1}, []byte("too short"), payload)
	}
	p.refused(errs.InvalidArgument, frame.Request{Kind: frame.Read}, readMeta(ref(9, 0)), nil)
	p.refused(errs.OutOfRange, frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Offset: 4 << 20, Length: 4096}), nil)
	p.refused(errs.OutOfRange, frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}, frame.ReadRange{Offset: 3 << 20, Length: 2 << 20}), nil)
	stale := ref(9, 0)
	stale.Generation = 1
	p.refused(errs.StaleGeneration, frame.Request{Kind: frame.Read}, readMeta(stale, frame.ReadRange{Length: 4096}), nil)
	p.refused(errs.InvalidArgument, frame.Request{Kind: frame.Sync}, make([]byte, 19), nil)
	p.refused(errs.InvalidArgument, frame.Request{Kind: frame.List}, make([]byte, 27), nil)
}

func TestDeposedWritersAndRecoverersAreTold(t *testing.T) {
	eachStore(t, func(t *testing.T, c *cluster, s Store) {
		shard(t, s, ref(9, 0), 4<<20)
		p := c.connect(t)
		if _, err := s.Fence(ref(9, 0), 5); err != nil {
			t.Fatal(err)
		}
		read := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
		meta, payload := unit(ref(9, 0), 1, 0, 4096)
		p.refused(errs.StaleEpoch, frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload)
		p.refused(errs.StaleEpoch, frame.Request{Kind: frame.Read, Epoch: 4}, read, nil)
		p.refused(errs.OK, frame.Request{Kind: frame.Read, Epoch: 0}, read, nil)
		p.refused(errs.OK, frame.Request{Kind: frame.Read, Epoch: 5}, read, nil)
		p.refused(errs.OK, frame.Request{Kind: frame.Read, Epoch: 5, Flags: frame.Recovery}, read, nil)
		p.refused(errs.Conflict, frame.Request{Kind: frame.Read, Epoch: 6, Flags: frame.Recovery}, read, nil)
		list := (&frame.ListBody{Shard: ref(9, 0), Most: 4096}).AppendTo(nil)
		p.refused(errs.StaleEpoch, frame.Request{Kind: frame.List, Epoch: 4, Flags: frame.Recovery}, list, nil)
		p.refused(errs.OK, frame.Request{Kind: frame.List, Epoch: 5, Flags: frame.Recovery}, list, nil)
	})
}

// TestLateRequestsAreAnsweredDeadline holds the connection's goroutine in one
// read, so that the next waits past its deadline.
func TestLateRequestsAreAnsweredDeadline(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	c.store.holdRead, c.store.entered = make(chan struct{}), make(chan struct{}, 1)
	p := c.connect(t)
	read := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
	both := p.encode(frame.Request{Kind: frame.Read}, read, nil)
	both = append(both, p.encode(frame.Request{Kind: frame.Read, Deadline: time.Microsecond}, read, nil)...)
	p.nc.Write(both)
	<-c.store.entered
	close(c.store.holdRead)
	if rep, _, _ := p.receive(); rep.Status != errs.OK {
		t.Errorf("first: %v", rep.Status)
	}
	if rep, _, _ := p.receive(); rep.Status != errs.Deadline {
		t.Errorf("second: %v, want deadline", rep.Status)
	}
}

// TestReadsOfASlowDeviceDoNotQueueBehindEachOther: once the device is known to
// be slow, reads overtake one another.
func TestReadsOfASlowDeviceDoNotQueueBehindEachOther(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	c.devices.all[0].reads.measured(1, time.Minute)
	c.store.holdRead, c.store.entered = make(chan struct{}), make(chan struct{}, 8)
	p := c.connect(t)
	for i := range uint64(3) {
		p.send(frame.Request{Kind: frame.Read, ID: 50 + i}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096 << (4 * i)}), nil)
	}
	for range 3 {
		<-c.store.entered // all three are at the device at once
	}
	p.send(frame.Request{Kind: frame.Ping, ID: 60}, nil, nil)
	if rep, _, _ := p.receive(); rep.ID != 60 {
		t.Errorf("reply %d came before the ping's", rep.ID)
	}
	close(c.store.holdRead)
	for range 3 {
		<-c.store.entered // the next quanta of the largest
	}
	for range 3 {
		if rep, _, got := p.receive(); rep.Status != errs.OK || len(got) != 4096<<(4*(rep.ID-50)) {
			t.Errorf("read %d: %v, %d bytes", rep.ID, rep.Status, len(got))
		}
	}
}

func TestAFailedDeviceStopsAnsweringAlone(t *testing.T) {
	good, bad := newFakeStore(), newFakeStore()
	shard(t, good, ref(9, 0), 4<<20)
	shard(t, bad, ref(9, 1), 4<<20)
	c := start(t, Limits{}, good, bad)
	p := c.connect(t)
	p.refused(errs.OK, frame.Request{Kind: frame.Read}, readMeta(ref(9, 1), frame.ReadRange{Length: 4096}), nil)
	close(bad.failed)
	p.refused(errs.Unavailable, frame.Request{Kind: frame.Read}, readMeta(ref(9, 1), frame.ReadRange{Length: 4096}), nil)
	p.refused(errs.OK, frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 4096}), nil)
	p.refused(errs.Unavailable, frame.Request{Kind: frame.Sync}, (&frame.SyncBody{Incarnation: 1, Device: testDevice + 1}).AppendTo(nil), nil)
}

func TestConnectionsAreBounded(t *testing.T) {
	c := start(t, Limits{Connections: 2})
	first := c.connect(t)
	c.connect(t)
	c.dial(t).closed()
	if c.Counters.Refused.Load() != 1 {
		t.Errorf("%d refused, want 1", c.Counters.Refused.Load())
	}
	first.nc.Close()
	waitFor(t, func() bool { return c.Counters.Connections.Load() == 1 })
	c.connect(t)
}

// TestMemoryIsBoundedAndGivenBack reads more at once than may be in memory.
func TestMemoryIsBoundedAndGivenBack(t *testing.T) {
	c := start(t, Limits{Memory: 1})
	shard(t, c.store, ref(9, 0), 16<<20)
	var readers sync.WaitGroup
	for range 6 {
		p := c.connect(t)
		p.nc.Write(bytes.Repeat(p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 16 << 20}), nil), 3))
		readers.Go(func() {
			for range 3 {
				if rep, _, got, err := p.next(); err != nil || rep.Status != errs.OK || len(got) != 16<<20 {
					t.Errorf("%v, %d bytes (%v)", rep.Status, len(got), err)
				}
			}
		})
	}
	readers.Wait()
	waitFor(t, func() bool {
		all := c.memory.try(c.limits.Memory)
		if all {
			c.memory.release(c.limits.Memory)
		}
		return all
	})
}

func TestCloseAnswersWhatWasReceived(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 4<<20)
	c.store.holdSync, c.store.entered = make(chan struct{}), make(chan struct{}, 1)
	p, quiet := c.connect(t), c.connect(t)
	p.send(frame.Request{Kind: frame.Sync, ID: 9}, syncMeta(1, ref(9, 0)), nil)
	<-c.store.entered
	closed := make(chan struct{})
	go func() { c.Close(context.Background()); close(closed) }()
	quiet.closed()
	close(c.store.holdSync)
	if rep, _, _ := p.receive(); rep.ID != 9 || rep.Status != errs.OK {
		t.Errorf("%+v", rep)
	}
	p.closed()
	<-closed
	if _, err := c.tryDial(t); err == nil {
		t.Error("a closed server accepts")
	}
}

func TestCloseCutsWhoeverTakesTooLong(t *testing.T) {
	c := start(t, Limits{})
	shard(t, c.store, ref(9, 0), 16<<20)
	p := c.connect(t)
	go p.nc.Write(bytes.Repeat(p.encode(frame.Request{Kind: frame.Read}, readMeta(ref(9, 0), frame.ReadRange{Length: 16 << 20}), nil), 100))
	p.r.Peek(1) // replies are under way, and nobody takes them
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Close(ctx)
}
