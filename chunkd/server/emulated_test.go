package server

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strake/chunkd/sched"
	"strake/chunkd/sched/mclock"
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
)

// shapedStore is a store in memory whose reads and appends take as long as on an
// emulated device. Its times are those of a synctest bubble, so that nothing here
// depends on how quick the machine is.
type shapedStore struct {
	*fakeStore
	file vfs.File
}

func newShapedStore(t testing.TB, spec string) *shapedStore {
	t.Helper()
	shape, err := vfs.ParseShape(spec)
	if err != nil {
		t.Fatal(err)
	}
	f, err := vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), shape, nil).Create("data")
	if err != nil {
		t.Fatal(err)
	}
	return &shapedStore{newFakeStore(), f}
}

func (s *shapedStore) Read(ref frame.ShardRef, ranges []frame.ReadRange, dst []byte) (int, error) {
	s.file.ReadAt(dst, 0)
	return s.fakeStore.Read(ref, ranges, dst)
}

// Append writes piece by piece, each in its turn, as store.Store does.
func (s *shapedStore) Append(a store.Append) error {
	if a.Turns == nil {
		_, err := s.file.WriteAt(a.Payload, 0)
		return err
	}
	var err error
	for at := 0; at < len(a.Payload) && err == nil; {
		n := min(len(a.Payload)-at, a.Turns.Piece())
		piece, off := a.Payload[at:at+n], int64(at)
		err = a.Turns.Turn(n, func() error {
			_, err := s.file.WriteAt(piece, off)
			return err
		})
		at += n
	}
	return cmp.Or(a.Turns.Wait(), err)
}

// pipes is a listener of connections in memory.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-l.accept:
		return nc, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// bench is a server over an emulated device, with closed-loop and paced clients.
type bench struct {
	t       testing.TB
	srv     *Server
	link    *pipes
	clients sync.WaitGroup
	stop    chan struct{}
	every   time.Duration // of the victim

	mu     sync.Mutex
	delays []time.Duration // guarded by mu: of the victim
	bytes  int64           // guarded by mu: of the aggressors
}

func newBench(t testing.TB, s Store, scheduler sched.Scheduler) *bench {
	b := &bench{t: t, link: &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}, stop: make(chan struct{})}
	shard(t, s, ref(9, 0), 4<<20)
	b.srv = New(Config{Cell: testCell, Server: 3, Devices: []Device{{ID: testDevice, Path: "d", Store: s, Sched: scheduler}}})
	go b.srv.Serve(b.link)
	return b
}

func (b *bench) close() {
	close(b.stop)
	b.clients.Wait()
	b.srv.Close(context.Background())
}

// client runs requests of a class on a connection of its own: one after another,
// or one each so often.
func (b *bench) client(class layout.Class, every time.Duration, request func(p *peer) (frame.Request, []byte, []byte), done func(took time.Duration, n int)) {
	near, far := net.Pipe()
	b.link.accept <- far
	p := &peer{t: b.t, nc: near, r: bufio.NewReaderSize(near, 1<<20)}
	b.clients.Go(func() {
		defer near.Close()
		hello := frame.HelloBody{Cell: testCell, Volume: 7}
		p.call(frame.Request{Kind: frame.Hello}, hello.AppendTo(nil), nil)
		p.handle = 1
		for next := time.Now(); ; next = next.Add(every) {
			select {
			case <-b.stop:
				return
			case <-time.After(time.Until(next)):
			}
			if every == 0 {
				next = time.Now()
			}
			r, meta, payload := request(p)
			r.Class, r.Tenant = class, layout.TenantID(class)
			rep, text, _ := p.call(r, meta, payload)
			if rep.Status != errs.OK {
				b.t.Errorf("%v: %v", class, frame.DecodeError(rep.Status, text))
				return
			}
			done(time.Since(next), max(len(payload), rep.Payload))
		}
	})
}

func (b *bench) victim() {
	meta := readMeta(ref(9, 0), frame.ReadRange{Length: 4096})
	b.client(layout.ClassInference, b.every, func(*peer) (frame.Request, []byte, []byte) {
		return frame.Request{Kind: frame.Read}, meta, nil
	}, func(took time.Duration, _ int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.delays = append(b.delays, took)
	})
}

func (b *bench) count(_ time.Duration, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += int64(n)
}

func (b *bench) trainingReads() {
	meta := readMeta(ref(9, 0), frame.ReadRange{Length: 1 << 20})
	for range 8 {
		b.client(layout.ClassTraining, 0, func(*peer) (frame.Request, []byte, []byte) { return frame.Request{Kind: frame.Read}, meta, nil }, b.count)
	}
}

// checkpointWrites sends a data unit each of 4 MiB writes to a segment of 4+2.
func (b *bench) checkpointWrites() {
	meta, payload := unit(ref(9, 0), 1, 0, 1<<20)
	for range 16 {
		b.client(layout.ClassCheckpoint, 0, func(*peer) (frame.Request, []byte, []byte) {
			return frame.Request{Kind: frame.Append, Epoch: 1}, meta, payload
		}, b.count)
	}
}

// outcome is what a window of a run showed.
type outcome struct {
	p50, p99 time.Duration
	rate     float64 // of the aggressors, MiB/s
	stats    mclock.Stats
}

// interfere runs the victim beside an aggressor on an emulated device of 16 MiB/s
// and 1000 operations a second, 400 µs, and measures after a warm-up.
func interfere(t *testing.T, fifo bool, every time.Duration, aggressor func(*bench)) (out outcome) {
	synctest.Test(t, func(t *testing.T) {
		var s sched.Scheduler = sched.NewQoS(mclock.Options{})
		if fifo {
			s = sched.NewFIFO(0, 0)
		}
		b := newBench(t, newShapedStore(t, "read=16MiB,write=16MiB,iops=1000,latency=400us,cache=4MiB"), s)
		b.every = every
		b.victim()
		if aggressor != nil {
			aggressor(b)
		}
		time.Sleep(6 * time.Second)
		b.mu.Lock()
		b.delays, b.bytes = nil, 0
		b.mu.Unlock()
		const window = 10 * time.Second
		time.Sleep(window)
		b.mu.Lock()
		slices.Sort(b.delays)
		n := len(b.delays)
		out = outcome{b.delays[n/2], b.delays[n*99/100], float64(b.bytes) / (1 << 20) / window.Seconds(), b.srv.Stats()[0].Stats}
		b.mu.Unlock()
		b.close()
	})
	return out
}
