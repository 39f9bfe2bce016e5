package transport

import (
	"sync/atomic"

	"strake/proto/frame"
)

// A flight's way: waiting in the queue, sending in the batch, sent.
const (
	waiting uint32 = iota
	sending
	sent
)

// flight is a connection's side of one call. It stays with its Call, so that a
// Call that is used again needs no new one.
type flight struct {
	call    *Call  // nil once canceled; changes under all three locks of the connection
	id      uint64 // guarded by conn.mu
	out, in int    // payload bytes it has under way; fixed while it flies

	state  atomic.Uint32 // rises under sender.mu
	header [frame.HeaderLen]byte
	size   int    // bytes of the whole frame; guarded by sender.mu, as is all below
	done   int    // bytes written
	rest   []byte // a private copy of the unwritten bytes, when the call ended too early
	own    bool   // rest is in use, even when it is empty
}

// encode makes the frame's header.
func (f *flight) encode() {
	r := &f.call.Request
	r.ID, r.Payload = f.id, f.out
	r.Encode(f.header[:], f.call.Meta)
	f.size, f.done, f.rest, f.own = frame.HeaderLen+len(f.call.Meta)+f.out, 0, nil, false
}

// unsent appends the frame's bytes that are not yet written.
func (f *flight) unsent(pieces [][]byte) [][]byte {
	if f.own {
		return append(pieces, f.rest)
	}
	skip := f.done
	add := func(b []byte) {
		if skip < len(b) {
			pieces = append(pieces, b[skip:])
			skip = 0
		} else {
			skip -= len(b)
		}
	}
	add(f.header[:])
	add(f.call.Meta)
	for _, p := range f.call.Payload {
		add(p)
	}
	return pieces
}

// keepRest copies what is not yet written of a frame that has begun, so that
// the frame can be finished without the caller's buffers. Closing the
// connection instead would fail other calls; sending something else would
// store it.
func (f *flight) keepRest() {
	rest := make([]byte, 0, f.size-f.done)
	for _, p := range f.unsent(nil) {
		rest = append(rest, p...)
	}
	f.rest, f.own = rest, true
}

// advance counts n written bytes and gives what is left of n after this frame.
func (f *flight) advance(n int) int {
	take := min(n, f.size-f.done)
	f.done += take
	if f.own {
		f.rest = f.rest[take:]
	}
	return n - take
}

func (f *flight) written() bool { return f.done == f.size }

// table gives calls their request ids. An id is a slot and the slot's
// generation, so that a late or invented id finds nothing. The zero value is
// ready.
type table struct {
	slots []slot
	free  []uint32
}

type slot struct {
	flight     *flight
	generation uint32
}

// maxCalls bounds the calls under way on one connection.
const maxCalls = 1 << 16

// add gives a flight its id; ok is false when the table is full.
func (t *table) add(f *flight) (ok bool) {
	if len(t.free) == 0 {
		if len(t.slots) == maxCalls {
			return false
		}
		t.free = append(t.free, uint32(len(t.slots)))
		t.slots = append(t.slots, slot{})
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	s := &t.slots[i]
	s.flight = f
	s.generation++
	f.id = uint64(s.generation)<<32 | uint64(i)
	return true
}

// get gives the flight of an id, nil for an unknown one.
func (t *table) get(id uint64) *flight {
	i := uint32(id)
	if int(i) >= len(t.slots) || t.slots[i].generation != uint32(id>>32) {
		return nil
	}
	return t.slots[i].flight
}

// remove frees the slot of an id that get knows.
func (t *table) remove(id uint64) {
	t.slots[uint32(id)].flight = nil
	t.free = append(t.free, uint32(id))
}
