package writetest

import (
	"fmt"
	"reflect"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

func (d *Driver) stripe(seq layout.Seq) *Stripe { return d.Stripes[seq-d.First] }

func (d *Driver) onCut(a write.Action) {
	st := a.Stripe
	if want := d.First + layout.Seq(len(d.Stripes)); st.Seq() != want || st.Copy != 1 {
		d.bad("seq %d copy %d was cut, want seq %d", st.Seq(), st.Copy, want)
		return
	}
	d.Stripes = append(d.Stripes, &Stripe{Now: st, Header: st.Header})
	at := layout.BlockCount(0)
	for _, p := range st.Pieces {
		t := d.writes[p.Write]
		if p.At != at || p.First != t.cut {
			d.bad("seq %d: piece %+v, %d blocks of the write are cut", st.Seq(), p, t.cut)
		}
		t.cut += p.Blocks
		t.last = st.Seq()
		at += p.Blocks
	}
	d.placed(a)
}

func (d *Driver) onMove(a write.Action) {
	k, st := d.stripe(a.Stripe.Seq()), a.Stripe
	old := k.Now
	if st.Seq() <= d.Flushed || st.Copy != old.Copy+1 || a.From != old.Segment.ID || st.Segment == old.Segment {
		d.bad("move of seq %d copy %d from segment %d; flushed %d, copy %d", st.Seq(), st.Copy, a.From, d.Flushed, old.Copy)
	}
	if st.Header.Epoch != old.Header.Epoch || st.Header.Flags != old.Header.Flags || st.Durable != old.Durable ||
		!reflect.DeepEqual(st.Header.Ranges, old.Header.Ranges) || !reflect.DeepEqual(st.Pieces, old.Pieces) {
		d.bad("seq %d: another content in another copy", st.Seq())
	}
	k.Now, k.Header, k.got = st, st.Header, 0
	d.placed(a)
}

// placed checks a copy's place and sends it.
func (d *Driver) placed(a write.Action) {
	st, h := a.Stripe, a.Stripe.Header
	id := st.Segment.ID
	if d.lastIn[id] >= h.Seq {
		d.bad("seq %d comes after %d in segment %d", h.Seq, d.lastIn[id], id)
	}
	if h.Offset < d.endOf[id] || h.End() > st.Segment.Length {
		d.bad("seq %d at %d to %d in segment %d of %d, used up to %d", h.Seq, h.Offset, h.End(), id, st.Segment.Length, d.endOf[id])
	}
	if d.sealed[id] {
		d.bad("seq %d goes to segment %d, which is sealed", h.Seq, id)
	}
	d.lastIn[id], d.endOf[id] = h.Seq, h.End()
	h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
	for i := range h.CRCs {
		h.CRCs[i] = uint32(h.Seq)
	}
	first, _ := h.Participants().Nth(0)
	checked := *h
	checked.Shard = first
	if err := checked.Check(); err != nil {
		d.bad("seq %d: %v", h.Seq, err)
	}
	if a.Shards != h.Participants() || a.Shards.Count() < int(h.Geometry.M)+1 {
		d.bad("seq %d goes to shards %b of %v", h.Seq, a.Shards, h.Geometry)
	}
	d.log("seq %d copy %d: %d blocks in segment %d (%v) at %d", h.Seq, st.Copy, h.Blocks, id, h.Geometry, h.Offset)
	d.sendTo(st, a.Shards)
}

func (d *Driver) onAcked(seq layout.Seq) {
	for q := d.Acked + 1; q <= seq; q++ {
		if k := d.stripe(q); k.got != k.Header.Participants() {
			d.bad("seq %d is acknowledged; of %b only %b answered", q, k.Header.Participants(), k.got)
		}
	}
	d.Acked = seq
	d.log("acked %d", seq)
}

func (d *Driver) onFlushed(seq layout.Seq) {
	for q := d.Flushed + 1; q <= seq; q++ {
		k := d.stripe(q)
		for p := k.Header.Participants(); p != 0; p &= p - 1 {
			i, _ := p.Nth(0)
			s := d.Cell.Server(k.Now.Segment.Shards[i].Server)
			if r := s.Shards[layout.ShardKey{Segment: k.Header.Segment, Shard: i}][q]; !s.Lost && (r == nil || !r.Durable || r.Header != k.Header) {
				d.bad("seq %d is flushed; shard %d on server %d doesn't have it durably", q, i, s.ID)
			}
		}
		d.held -= layout.BlockCount(k.Header.Blocks).Bytes()
	}
	d.Flushed = seq
	d.log("flushed %d", seq)
	if seq > d.Acked {
		d.bad("flushed %d, acked %d", seq, d.Acked)
	}
}

func (d *Driver) onSeal(seal *stripe.Seal) {
	want := d.sealOf(seal.Segment)
	if !reflect.DeepEqual(want, *seal) {
		d.bad("segment %d is sealed at %d stripes up to %d, want %d up to %d", seal.Segment, seal.Count, seal.Last, want.Count, want.Last)
	}
	d.log("seal segment %d at %d stripes", seal.Segment, seal.Count)
	d.sealed[seal.Segment] = true
	d.Cell.send(nil, func() {
		err := d.Cell.SealSegment(d.Epoch, seal)
		d.Cell.send(nil, func() {
			d.Core.Sealed(d.Now, seal.Segment, err)
			d.take()
		})
	})
}

// sealOf makes the seal anew: the flushed stripes whose current copy is there.
func (d *Driver) sealOf(id layout.SegmentID) stripe.Seal {
	want := stripe.NewSeal(id, d.Cell.Segments[id].Geometry)
	for q := d.First; q <= d.Flushed; q++ {
		if h := d.stripe(q).Header; h.Segment == id {
			want.Add(h)
		}
	}
	return want
}

func (d *Driver) onWriteDone(id write.WriteID, err error) {
	t := d.writes[id]
	if t.done {
		d.bad("write %d is done twice", id)
	}
	t.done, t.err = true, err
	if err != nil {
		if errs.KindOf(err) == errs.NoSpace {
			d.held -= (t.blocks - t.cut).Bytes()
			if t.blocks == 0 {
				d.bad("write %d has no payload and was refused for want of space", id)
			}
		}
		return
	}
	reached := d.Acked
	if t.durable {
		reached = d.Flushed
	}
	if t.cut != t.blocks || t.last > reached {
		d.bad("write %d is done: %d of %d blocks cut, up to seq %d of %d", id, t.cut, t.blocks, t.last, reached)
	}
}

func (d *Driver) onFlushDone(id write.FlushID, err error) {
	p, ok := d.flushes[id]
	if !ok {
		d.bad("flush %d is done twice", id)
	}
	delete(d.flushes, id)
	if err == nil && p.seq > d.Flushed {
		d.bad("flush %d is done, seq %d is not flushed", id, p.seq)
	}
	for _, t := range d.order[:p.writes] {
		if err == nil && t.last > d.Flushed || err == nil && t.err == nil && t.cut < t.blocks {
			d.bad("flush %d is done, write %d is not flushed", id, t.id)
		}
	}
}

func (d *Driver) onReleased(seq layout.Seq) {
	d.Ended = errs.Closed
	if seq != d.Flushed || int(seq-d.First+1) != len(d.Stripes) {
		d.bad("released at %d, flushed %d, %d stripes", seq, d.Flushed, len(d.Stripes))
	}
	for q := d.First; q <= seq; q++ {
		if s := d.Cell.Segments[d.stripe(q).Header.Segment]; s.Seal == nil {
			d.bad("released; segment %d of seq %d is not sealed", s.ID, q)
		}
	}
}

// Settled tells what is still owed: every write and flush gets one answer.
func (d *Driver) Settled() error {
	for _, t := range d.order {
		if !t.done {
			return fmt.Errorf("write %d of %d blocks, %d cut, never got an answer", t.id, t.blocks, t.cut)
		}
	}
	if len(d.flushes) > 0 {
		return fmt.Errorf("%d flushes never got an answer", len(d.flushes))
	}
	return nil
}
