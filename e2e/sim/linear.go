package sim

import (
	"time"

	linear "strake/e2e/history"
	"strake/internal/layout"
)

// Some seeds have clients that take turns on single blocks: each takes the volume
// over, reads and writes durably, and loses it to another. Their history must be
// linearizable.

const (
	linearBlocks  = 4 // of each volume, that are fought over
	linearScratch = 32
	linearCheck   = 20 * time.Second // real time for one check
)

// turn is one client's turn on a volume.
func (x *script) turn() bool {
	at := x.s.rand.IntN(2)
	x.s.ops++
	h := &x.open[at]
	if h.v != nil && h.v.Err() != nil {
		*h = handle{}
	}
	if h.v == nil {
		his := x.s.named(lines[at])
		v, err := x.p.c.OpenWriter(x.f, his.name, x.s.chance(400))
		if x.dead() {
			return false
		}
		if err != nil {
			return x.sleep(20*time.Millisecond, 300*time.Millisecond)
		}
		*h = handle{v, his.opened(v, x.p)}
	}
	block := layout.BlockNumber(x.s.rand.IntN(linearBlocks))
	ok := false
	if x.s.chance(500) {
		ok = x.readOne(h, block)
	} else {
		ok = x.writeOne(h, block, x.s.linear)
	}
	if !ok {
		return false
	}
	if x.s.chance(150) {
		return x.close(at)
	}
	return x.sleep(0, 30*time.Millisecond)
}

// blockName is a block's number in the history.
func blockName(v layout.VolumeID, b layout.BlockNumber) uint64 { return uint64(v)<<32 | uint64(b) }

func (h *handle) name(b layout.BlockNumber) uint64 { return blockName(h.v.ID, b) }

// readOne reads a block; the read counts when a durable write after it proves that
// the lease was still held.
func (x *script) readOne(h *handle, b layout.BlockNumber) bool {
	op := x.s.linear.Read(x.p.number, h.name(b))
	r := x.s.volume(h.v.ID).begin(h.v, h.w, b, 1)
	data, err := h.v.Read(x.f, b, 1)
	if x.dead() {
		return false
	}
	r.end(data, err)
	if err != nil {
		return true
	}
	got, _ := stampOf(data, x.s.volume(h.v.ID).stamp, b)
	if !x.writeOne(h, layout.BlockNumber(linearScratch+x.p.number), nil) {
		return false
	}
	if x.last == nil {
		op.Done(got)
		x.s.rare("a linearizable read")
	}
	return true
}

// writeOne writes a block durably and waits for it; what came of it is in last.
func (x *script) writeOne(h *handle, b layout.BlockNumber, log *linear.Log) bool {
	his := x.s.volume(h.v.ID)
	from, number := his.submit(h.w, b, 1, false)
	data := make([]byte, layout.BlockSize)
	fill(data, his.stamp, b, uint64(number))
	var op *linear.Op
	if log != nil {
		op = log.Write(x.p.number, h.name(b), uint64(number))
	}
	w := h.w
	var refused error
	alive := x.f.Wait(func(done func()) {
		refused = h.v.Write(b, data, true, func(err error) {
			his.answeredWrite(w, from, 1, true, err)
			x.last = err
			done()
		})
		if refused != nil {
			his.withdraw(w, from, 1)
			x.last = refused
			done()
		}
	})
	if !alive || x.dead() {
		return false
	}
	if op != nil && x.last == nil {
		op.Done(0)
		x.s.rare("a linearizable write")
	} else if op != nil && refused != nil {
		op.Refused()
	}
	return true
}

// checkLinear looks at the whole history.
func (s *Sim) checkLinear() {
	if s.linear == nil || s.err != nil {
		return
	}
	if err := s.linear.Check(linearCheck); err != nil {
		s.fail("P4: %v", err)
	}
}
