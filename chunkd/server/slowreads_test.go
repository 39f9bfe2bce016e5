package server

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"strake/chunkd/format"
	"strake/chunkd/sched"
	"strake/chunkd/store"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/vfs"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// BenchmarkWhatSlowReadsWaitFor is for people who look for the causes of a tail: it
// shows, in real time, each call at the device that was under way during the slowest
// of 4 KiB reads beside a load. One operation is a second of it.
func BenchmarkWhatSlowReadsWaitFor(b *testing.B) {
	for name, load := range map[string]func(*rig){"none": func(*rig) {}, "training-reads": (*rig).trainingReads, "checkpoint-writes": (*rig).checkpointWrites, "random-writes": (*rig).randomWrites} {
		for _, fifo := range []bool{false, true} {
			scheduler := "qos"
			if fifo {
				scheduler = "fifo"
			}
			b.Run(name+"/"+scheduler, func(b *testing.B) {
				g := newRig(b, fifo)
				defer g.close()
				g.tell(b, time.Duration(b.N)*time.Second, load)
			})
		}
	}
}

// rig is a server over the whole store of one device.
type rig struct {
	t       testing.TB
	srv     *Server
	store   *store.Store
	device  *deviceLog
	link    *pipes
	clients sync.WaitGroup
	stop    chan struct{}
	segment layout.SegmentID // the newest

	mu    sync.Mutex
	reads []slowRead // guarded by mu
	bytes int        // guarded by mu: that the load moved
}

// slowRead is a read of the victim. queue and service are the server's words.
type slowRead struct {
	due                  time.Time
	took, queue, service time.Duration
}

func newRig(t testing.TB, fifo bool) *rig {
	g := &rig{t: t, link: &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}, stop: make(chan struct{}), segment: 9}
	spec := vfs.ShapeSpec{Read: 60 << 20, Write: 60 << 20, IOPS: 4000, Latency: 100 * time.Microsecond}
	g.device = &deviceLog{FS: vfs.NewShape(vfs.NewMem(vfs.MemOptions{}), spec, vfs.NewPreciseClock())}
	id := format.Superblock{Cell: testCell, Server: layout.UUID{1}, UUID: layout.UUID{2}}
	scheduler, opts := sched.Scheduler(sched.NewFIFO(0, 0)), store.Options{}
	if !fifo {
		own := sched.NewOwn()
		scheduler, opts.Queue = own.QoS, own
	}
	err := store.Format(g.device, id)
	if err == nil {
		g.store, err = store.Open(g.device, id, opts)
	}
	if err == nil {
		err = g.store.SetDevice(testDevice)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.srv = New(Config{Cell: testCell, Server: 3, Devices: []Device{{ID: testDevice, Path: "d", Store: g.store, Sched: scheduler}}})
	go g.srv.Serve(g.link)
	return g
}

func (g *rig) close() {
	close(g.stop)
	g.clients.Wait()
	g.srv.Close(context.Background())
	if err := g.store.Close(); err != nil {
		g.t.Error(err)
	}
}

// tell runs the victim beside a load and says what its slowest reads waited for.
func (g *rig) tell(b *testing.B, window time.Duration, load func(*rig)) {
	g.victim()
	time.Sleep(time.Second)
	load(g)
	time.Sleep(time.Second / 2)
	g.mu.Lock()
	g.reads, g.bytes = nil, 0
	g.mu.Unlock()
	time.Sleep(window)
	g.mu.Lock()
	list, rate := slices.Clone(g.reads), float64(g.bytes)/(1<<20)/window.Seconds()
	g.mu.Unlock()
	slices.SortFunc(list, func(a, b slowRead) int { return int(b.took - a.took) })
	s, n := g.srv.Stats()[0].Stats, len(list)
	if n == 0 {
		b.Fatal("no read was answered")
	}
	b.ReportMetric(float64(list[n/2].took.Microseconds()), "p50-us")
	b.ReportMetric(float64(list[n/100].took.Microseconds()), "p99-us")
	b.Logf("%d reads: p50 %v, p99 %v, slowest %v; the load moved %.1f MiB/s; width %d, quanta %v, cost %+v after %d lessons",
		n, list[n/2].took, list[n/100].took, list[0].took, rate, s.Width, s.Quantum, s.Cost, s.Lessons)
	for _, r := range list[:min(n, 5)] {
		b.Logf("took %v, of which %v in the queue and %v at the device", r.took, r.queue, r.service)
		for _, c := range g.device.during(r.due, r.due.Add(r.took)) {
			b.Logf("    %10v to %10v  %s of %d bytes, %s", c.from.Sub(r.due), c.to.Sub(r.due), c.what, c.bytes, c.path)
		}
	}
}

func (g *rig) connect() *peer {
	near, far := net.Pipe()
	g.link.accept <- far
	p := &peer{t: g.t, nc: near, r: bufio.NewReaderSize(near, 2<<20)}
	p.hello()
	return p
}

// victim reads 4 KiB each 11 ms, from a shard that was written before.
func (g *rig) victim() {
	const units, every = 4, 11*time.Millisecond + 17*time.Microsecond
	shard(g.t, g.store, ref(g.segment, 0), units<<20)
	for i := range units {
		meta, payload := unit(ref(g.segment, 0), layout.Seq(i+1), layout.ShardOffset(i<<20), 1<<20)
		body, err := frame.DecodeAppend(meta)
		if err == nil {
			err = g.store.Append(store.Append{Ref: body.Shard, Epoch: 1, Header: body.Header, Payload: payload, Durable: true})
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	p, clock, from := g.connect(), vfs.NewPreciseClock(), ref(g.segment, 0)
	g.clients.Go(func() {
		defer p.nc.Close()
		for n, due := 0, time.Now(); !g.stopped(); n, due = n+1, due.Add(every) {
			clock.Sleep(time.Until(due))
			meta := readMeta(from, frame.ReadRange{Offset: layout.ShardOffset(n * 7 % 1000 * 4096), Length: 4096})
			rep, text, _ := p.call(frame.Request{Kind: frame.Read, Class: layout.ClassInference, Tenant: 1}, meta, nil)
			if rep.Status != errs.OK {
				g.t.Error(frame.DecodeError(rep.Status, text))
				return
			}
			g.mu.Lock()
			g.reads = append(g.reads, slowRead{due, time.Since(due), rep.Queue, rep.Service})
			g.mu.Unlock()
		}
	})
}

func (g *rig) stopped() bool {
	select {
	case <-g.stop:
		return true
	default:
		return false
	}
}

// pump keeps so many requests under way on a connection; each moves bytes.
func (g *rig) pump(class layout.Class, depth, bytes int, next func() (frame.Request, []byte, []byte)) {
	p, slots := g.connect(), make(chan struct{}, depth)
	g.clients.Go(func() {
		defer close(slots)
		for !g.stopped() {
			slots <- struct{}{}
			r, meta, payload := next()
			r.Class, r.Tenant = class, layout.TenantID(class)
			p.send(r, meta, payload)
		}
	})
	g.clients.Go(func() {
		defer p.nc.Close()
		for range slots {
			rep, text, _ := p.receive()
			if rep.Status != errs.OK {
				g.t.Error(frame.DecodeError(rep.Status, text))
			}
			g.mu.Lock()
			g.bytes += bytes
			g.mu.Unlock()
		}
	})
}

func (g *rig) trainingReads() {
	from, n := ref(g.segment, 0), 0
	g.pump(layout.ClassTraining, 8, 1<<20, func() (frame.Request, []byte, []byte) {
		n++
		return frame.Request{Kind: frame.Read}, readMeta(from, frame.ReadRange{Offset: layout.ShardOffset(n % 4 << 20), Length: 1 << 20}), nil
	})
}

// writer gives appends of equal units, one shard after the other.
func (g *rig) writer(length layout.ShardOffset, bytes int, flags frame.Flags) func() (frame.Request, []byte, []byte) {
	var seq layout.Seq
	at := length
	_, payload := unit(ref(1, 0), 1, 0, bytes)
	crcs := stripe.AppendBlockCRCs(nil, payload)
	crcs = append(crcs, crcs...)
	return func() (frame.Request, []byte, []byte) {
		if at >= length {
			g.segment, at = g.segment+1, 0
			shard(g.t, g.store, ref(g.segment, 0), length)
		}
		seq++
		to := ref(g.segment, 0)
		h := stripe.Header{Cell: testCell, Volume: 7, Segment: to.Segment, Shard: to.Shard, Geometry: testGeometry, Epoch: 1, Seq: seq,
			Offset: at, Shape: layout.Shape{Unit: uint32(bytes), Data: 1}, Blocks: uint32(bytes / layout.BlockSize), CRCs: crcs,
			Ranges: []stripe.Range{{Start: layout.BlockNumber(at) / layout.BlockSize, Count: uint32(bytes / layout.BlockSize), Kind: stripe.Write}}}
		at += layout.ShardOffset(bytes)
		return frame.Request{Kind: frame.Append, Epoch: 1, Flags: flags}, (&frame.AppendBody{Shard: to, Header: h.AppendTo(nil)}).AppendTo(nil), payload
	}
}

// checkpointWrites appends as one server of six sees 4 MiB writes at depth 16.
func (g *rig) checkpointWrites() {
	next, n := g.writer(32<<20, 1<<20, 0), 0
	g.pump(layout.ClassCheckpoint, 17, 1<<20, func() (frame.Request, []byte, []byte) {
		r, meta, payload := next()
		if n++; n%64 == 0 { // a sync each second or so
			r.Flags |= frame.Durable
		}
		return r, meta, payload
	})
}

// randomWrites appends as one server of six sees flushed 4 KiB writes at depth 32.
func (g *rig) randomWrites() {
	g.pump(layout.ClassTraining, 16, 4096, g.writer(8<<20, 4096, frame.Durable))
}
