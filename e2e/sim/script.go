package sim

import (
	"time"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
)

const (
	mostWaiting = 8 // writes of one process that are not answered
	rival       = 2 // the client that reads both volumes, and takes them over at times
)

// script is one life's sequence of random operations.
type script struct {
	p       *clientProcess
	s       *Sim
	f       *simclient.Fiber
	open    [len(lines)]handle
	waiting int    // writes that are not answered
	fewer   func() // told when one is
	last    error  // what came of the last durable write
}

// handle is a volume open for writing.
type handle struct {
	v *simclient.Volume
	w *writerHistory
}

func (x *script) sleep(lo, hi time.Duration) bool { return x.p.sleep(x.f, x.s.between(lo, hi)) }

// step does one operation and rests; false: the process died.
func (x *script) step() bool {
	if x.p.number == administrator {
		return x.govern()
	}
	if x.s.linear != nil {
		return x.turn()
	}
	at := x.p.number
	if at == rival {
		at = x.s.rand.IntN(2)
	}
	x.s.ops++
	if !x.do(at) {
		return false
	}
	if x.s.chance(850) {
		return x.sleep(0, 3*time.Millisecond)
	}
	return x.sleep(50*time.Millisecond, 600*time.Millisecond)
}

func (x *script) do(at int) bool {
	h := &x.open[at]
	if h.v != nil && h.v.Err() != nil {
		*h = handle{} // deposed
	}
	if h.v == nil {
		return x.start(at)
	}
	switch n := x.s.rand.IntN(100); {
	case n < 52:
		return x.write(h)
	case n < 60:
		return x.discard(h)
	case n < 74:
		return x.flush(h)
	case n < 90:
		return x.read(h)
	case n < 94:
		x.checkpoint(h)
	case n < 97:
		return x.close(at)
	default:
		return x.glance(at)
	}
	return true
}

// start opens the volume: the rival mostly reads it, or takes it by force.
func (x *script) start(at int) bool {
	force := x.s.chance(150)
	if x.p.number == rival {
		if !x.s.chance(80) {
			return x.glance(at)
		}
		force = true
		x.s.rare("a volume taken over by force")
	}
	v, err := x.p.c.OpenWriter(x.f, lines[at], force)
	x.s.note("open", uint64(x.p.number), uint64(at), uint64(errs.KindOf(err)))
	if err != nil {
		return x.sleep(100*time.Millisecond, time.Second)
	}
	h := x.s.volume(v.ID)
	x.open[at] = handle{v, h.opened(v, x.p)}
	return x.verify(h, v, x.open[at].w)
}

// verify reads a volume that was just opened, all of it at times.
func (x *script) verify(h *history, v *simclient.Volume, w *writerHistory) bool {
	first, count := layout.BlockNumber(0), layout.BlockCount(x.s.blocks)
	if !x.s.chance(100) {
		count = layout.BlockCount(x.s.blocks / 8)
		first = layout.BlockNumber(x.s.rand.IntN(x.s.blocks - int(count)))
	}
	r := h.begin(v, w, first, count)
	data, err := v.Read(x.f, first, count)
	if x.dead() {
		return false
	}
	r.end(data, err)
	return true
}

func (x *script) dead() bool { return !x.p.up || !x.f.Alive() }

// glance opens a volume for reading, and reads.
func (x *script) glance(at int) bool {
	v, err := x.p.c.OpenReader(x.f, lines[at])
	if x.dead() {
		return false
	}
	x.s.note("open reader", uint64(x.p.number), uint64(at), uint64(errs.KindOf(err)))
	if err != nil {
		return x.sleep(50*time.Millisecond, 500*time.Millisecond)
	}
	return x.verify(x.s.volume(v.ID), v, nil)
}

// draw chooses a range: mostly small ones.
func (x *script) draw() (first layout.BlockNumber, count int) {
	switch n := x.s.rand.IntN(1000); {
	case n < 600:
		count = 1 + x.s.rand.IntN(3)
	case n < 900:
		count = 1 + x.s.rand.IntN(6)
	case n < 992:
		count = 1 + x.s.rand.IntN(32)
	default:
		count = 1 + x.s.rand.IntN(x.s.blocks)
	}
	return layout.BlockNumber(x.s.rand.IntN(x.s.blocks - count + 1)), count
}

// write submits a write; at times it waits for it, or asks for FUA.
func (x *script) write(h *handle) bool {
	first, count := x.draw()
	his := x.s.volume(h.v.ID)
	from, number := his.submit(h.w, first, count, false)
	data := make([]byte, layout.BlockCount(count).Bytes())
	fill(data, his.stamp, first, uint64(number))
	durable := x.s.chance(80)
	return x.submitted(h, from, count, durable, func(done func(error)) error { return h.v.Write(first, data, durable, done) })
}

func (x *script) discard(h *handle) bool {
	first, count := x.draw()
	zero := x.s.chance(400)
	from, _ := x.s.volume(h.v.ID).submit(h.w, first, count, true)
	return x.submitted(h, from, count, false, func(done func(error)) error {
		return h.v.Discard(first, layout.BlockCount(count), zero, done)
	})
}

// submitted hands an operation in and waits while too many are under way.
func (x *script) submitted(h *handle, from, count int, durable bool, hand func(done func(error)) error) bool {
	his, w := x.s.volume(h.v.ID), h.w
	x.waiting++
	err := hand(func(err error) {
		his.answeredWrite(w, from, count, durable, err)
		x.waiting--
		if fewer := x.fewer; fewer != nil {
			x.fewer = nil
			fewer()
		}
	})
	if err != nil {
		x.waiting--
		his.withdraw(w, from, count)
		if errs.KindOf(err) == errs.Overloaded {
			x.s.rare("a write refused at the memory cap")
			return h.v.Room(x.f)
		}
		return true
	}
	most := mostWaiting
	if x.s.chance(300) {
		most = 0
	}
	for x.waiting > most {
		if !x.f.Wait(func(done func()) { x.fewer = done }) {
			return false
		}
	}
	return true
}

func (x *script) flush(h *handle) bool {
	his, w := x.s.volume(h.v.ID), h.w
	if x.s.chance(400) {
		return x.flushAcked(h)
	}
	before := len(w.submitted)
	err := h.v.FlushWait(x.f)
	if x.dead() {
		return false
	}
	his.answeredFlush(w, before, err)
	return true
}

// flushAcked flushes what is acknowledged, and not what is under way.
func (x *script) flushAcked(h *handle) bool {
	acked := h.w.acked
	if acked < h.w.cut {
		x.s.rare("a flush while stripes are in flight")
	}
	err := h.v.FlushAcked(x.f)
	if x.dead() {
		return false
	}
	x.s.volume(h.v.ID).answeredFlushAcked(h.w, acked, err)
	return true
}

func (x *script) read(h *handle) bool {
	first, count := x.draw()
	r := x.s.volume(h.v.ID).begin(h.v, h.w, first, layout.BlockCount(count))
	data, err := h.v.Read(x.f, first, layout.BlockCount(count))
	if x.dead() {
		return false
	}
	r.end(data, err)
	return true
}

// checkpoint writes the map beside the other operations.
func (x *script) checkpoint(h *handle) {
	v := h.v
	x.p.c.Go(func(f *simclient.Fiber) {
		err := v.Checkpoint(f)
		x.s.note("map checkpoint", uint64(v.ID), uint64(errs.KindOf(err)))
	})
}

func (x *script) close(at int) bool {
	h := x.open[at]
	x.open[at] = handle{}
	err := h.v.Close(x.f)
	if x.dead() {
		return false
	}
	x.s.note("close", uint64(x.p.number), uint64(h.v.ID), uint64(errs.KindOf(err)))
	return true
}
