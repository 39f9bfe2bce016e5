package build

import (
	"bytes"

	"strake/internal/erasure"
	"strake/internal/layout"
	"strake/internal/planted"
	"strake/proto/stripe"
)

// Units are the units of one stripe as lists of slices.
type Units struct {
	builder *Builder
	pieces  [layout.MaxShards][][]byte // by shard; empty for one that takes no part
	padding int                        // pieces at the end of the last data unit that are zeros
	last    layout.ShardIndex          // the last data unit
	parity  *[]byte                    // all parity units; nil when there are none
	class   int                        // of parity
}

// Of gives one participant's unit in pieces, to be sent one after another.
func (u *Units) Of(s layout.ShardIndex) [][]byte { return u.pieces[s] }

// Release gives the parity buffers back. Nothing may use the units any more.
func (u *Units) Release() {
	for s := range u.pieces {
		clear(u.pieces[s])
		u.pieces[s] = u.pieces[s][:0]
	}
	if u.parity != nil {
		u.builder.parity[u.class].Put(u.parity)
		u.parity = nil
	}
	u.builder.units.Put(u)
}

// cut lays the payload over the data units and pads the last one.
func (u *Units) cut(h *stripe.Header, payload [][]byte) {
	at, piece := 0, 0 // where the payload goes on
	u.padding = 0
	for d := h.Shape.Data; d != 0; d &= d - 1 {
		u.last, _ = d.Nth(0)
		list := u.pieces[u.last][:0]
		left := int(h.Shape.Unit)
		for left > 0 && piece < len(payload) {
			p := payload[piece][at:]
			if p = p[:min(len(p), left)]; len(p) > 0 {
				list = append(list, p)
			}
			left -= len(p)
			if at += len(p); at == len(payload[piece]) {
				at, piece = 0, piece+1
			}
		}
		for ; left > 0; u.padding++ {
			pad := zeros[:min(left, len(zeros))]
			if planted.Is(planted.PaddingNotZeroed) {
				pad = bytes.Repeat([]byte{0xa5}, len(pad))
			}
			list = append(list, pad)
			left -= len(list[len(list)-1])
		}
		u.pieces[u.last] = list
	}
}

// addParity gives every parity unit its buffer.
func (u *Units) addParity(h *stripe.Header) {
	unit := int(h.Shape.Unit)
	if unit == 0 {
		return
	}
	u.parity, u.class = u.builder.buffer(unit * int(h.Geometry.M))
	for m := range int(h.Geometry.M) {
		s := int(h.Geometry.K) + m
		u.pieces[s] = append(u.pieces[s][:0], (*u.parity)[m*unit:(m+1)*unit])
	}
}

// encode fills parity and checksums, column by column.
func (u *Units) encode(h *stripe.Header, coder *erasure.Coder) error {
	var walk [layout.MaxShards]cursor
	var units [layout.MaxShards][]byte
	for done := 0; done < int(h.Shape.Unit); {
		n := min(column, int(h.Shape.Unit)-done)
		for p := h.Participants(); p != 0; p &= p - 1 {
			s, _ := p.Nth(0)
			n = min(n, walk[s].run(u.pieces[s]))
		}
		padding := walk[u.last].piece >= len(u.pieces[u.last])-u.padding
		for p := h.Participants(); p != 0; p &= p - 1 {
			s, _ := p.Nth(0)
			units[s] = walk[s].take(u.pieces[s], n)
		}
		if padding {
			units[u.last] = nil
		}
		if err := coder.Encode(units[:h.Geometry.Shards()]); err != nil {
			return err
		}
		u.sum(h, &units, done)
		done += n
	}
	return nil
}

// sum sets the checksums of a column that begins at offset from of each unit.
func (u *Units) sum(h *stripe.Header, units *[layout.MaxShards][]byte, from int) {
	rank, n := 0, int(h.Shape.UnitBlocks())
	column := len(units[h.Geometry.K]) / layout.BlockSize
	for p := h.Participants(); p != 0; p &= p - 1 {
		s, _ := p.Nth(0)
		at := rank*n + from/layout.BlockSize
		crcs := h.CRCs[at : at+column]
		for i := range crcs {
			if crcs[i] = u.builder.zeroCRC; units[s] != nil {
				crcs[i] = stripe.BlockCRC(units[s][i*layout.BlockSize : (i+1)*layout.BlockSize])
			}
		}
		rank++
	}
}

// cursor walks a unit's pieces.
type cursor struct{ piece, at int }

// run is how many bytes follow in one piece.
func (c *cursor) run(pieces [][]byte) int { return len(pieces[c.piece]) - c.at }

// take gives the next n bytes, at most run.
func (c *cursor) take(pieces [][]byte, n int) []byte {
	b := pieces[c.piece][c.at : c.at+n]
	if c.at += n; c.at == len(pieces[c.piece]) {
		c.piece, c.at = c.piece+1, 0
	}
	return b
}

// Payload appends the payload of a stripe to dst as slices of its data units,
// the padding left out. units are by shard and whole.
func Payload(dst [][]byte, h *stripe.Header, units [][]byte) [][]byte {
	left := int(layout.BlockCount(h.Blocks).Bytes())
	for d := h.Shape.Data; d != 0 && left > 0; d &= d - 1 {
		s, _ := d.Nth(0)
		p := units[s][:min(left, int(h.Shape.Unit))]
		dst = append(dst, p)
		left -= len(p)
	}
	return dst
}
