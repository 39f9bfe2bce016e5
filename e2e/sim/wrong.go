package sim

import (
	"bytes"
	"encoding/binary"

	"strake/client/simclient"
	"strake/internal/errs"
	"strake/internal/layout"
)

// P3: a read returns the right bytes or an error.

// A block of a version repeats its stamp: magic, volume, block, version.
const stampLen = 32

const stampMagic = 0x6d69732d656b7274

// fill makes the content of an operation.
func fill(data []byte, v layout.VolumeID, first layout.BlockNumber, number uint64) {
	le := binary.LittleEndian
	for at := 0; at < len(data); at += layout.BlockSize {
		b := data[at : at+layout.BlockSize]
		le.PutUint64(b, stampMagic)
		le.PutUint64(b[8:], uint64(v))
		le.PutUint64(b[16:], uint64(first)+uint64(at/layout.BlockSize))
		le.PutUint64(b[24:], number)
		for n := stampLen; n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}
}

// stampOf reads a block's version; ok is false when it is torn or foreign.
func stampOf(b []byte, v layout.VolumeID, block layout.BlockNumber) (number uint64, ok bool) {
	le := binary.LittleEndian
	first := b[:stampLen]
	if !bytes.Equal(b[stampLen:], b[:len(b)-stampLen]) {
		return 0, false
	}
	if le.Uint64(b) == 0 {
		return 0, string(first) == string(make([]byte, stampLen))
	}
	return le.Uint64(b[24:]), le.Uint64(b) == stampMagic && le.Uint64(b[8:]) == uint64(v) && le.Uint64(b[16:]) == uint64(block)
}

// reading is a read under way: what it must see, and what may come meanwhile.
type reading struct {
	h     *history
	v     *simclient.Volume
	w     *writerHistory // nil: a reader
	first layout.BlockNumber
	want  []uint64
	upTo  layout.Seq // of a reader: what its map showed
	since int        // operations that its writer had submitted
}

// begin notes what a read must see.
func (h *history) begin(v *simclient.Volume, w *writerHistory, first layout.BlockNumber, count layout.BlockCount) *reading {
	r := &reading{h: h, v: v, w: w, first: first, want: make([]uint64, count)}
	if w == nil {
		r.look()
		return r
	}
	for i := range r.want {
		r.want[i] = h.own(w, first+layout.BlockNumber(i))
	}
	r.since = len(w.submitted)
	return r
}

// look notes what a reader must see by the map that it has now.
func (r *reading) look() {
	r.upTo = r.v.Applied()
	for i := range r.want {
		r.want[i] = r.h.at(r.first+layout.BlockNumber(i), latest, r.upTo)
	}
}

// end checks what a read gave.
func (r *reading) end(data []byte, err error) {
	h := r.h
	h.s.note("read", uint64(h.id), uint64(r.first), uint64(len(r.want)), uint64(errs.KindOf(err)))
	if err != nil {
		if errs.KindOf(err) == errs.Corrupt && len(h.s.hurt) == 0 || h.s.healed {
			h.s.fail("P1: volume %d, blocks %d+%d can't be read: %v", h.id, r.first, len(r.want), err)
		}
		return
	}
	if r.w == nil && r.v.Applied() != r.upTo { // a segment had gone: all of it was read again by a fresh map
		h.s.rare("a reader's map renewed in a read")
		r.look()
	}
	for i, want := range r.want {
		block := r.first + layout.BlockNumber(i)
		got, ok := stampOf(data[i*layout.BlockSize:(i+1)*layout.BlockSize], h.stamp, block)
		if !ok {
			h.s.fail("P3: volume %d, block %d: torn or foreign bytes, version %d", h.id, block, got)
			return
		}
		if got != want && !r.came(block, got) {
			h.s.fail("%s", h.explain(r, block, got, want))
			return
		}
	}
}

// came tells whether the writer itself submitted the version while it was reading.
func (r *reading) came(block layout.BlockNumber, got uint64) bool {
	if r.w == nil {
		return false
	}
	for _, b := range r.w.submitted[r.since:] {
		if b.block == block && b.number == got {
			return true
		}
	}
	return false
}
