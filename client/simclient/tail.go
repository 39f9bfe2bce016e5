package simclient

import (
	"bytes"

	"strake/client/internal/recovery"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/stripe"
)

// tailSegment allocates a segment that the whole tail fits in.
func (l lease) tailSegment(f *Fiber, tail []recovery.Tail, avoid []layout.ServerID) (*Segment, error) {
	var need layout.ShardOffset
	for _, t := range tail {
		need += layout.ShardOffset(layout.BlockCount(t.Header.Blocks).Bytes())
	}
	r, err := metaCall[*Segments](l.c, f, allocateTimeout, allocateTimeout, &AllocateSegments{Command: l.c.command(), Session: l.c.session.ID,
		Volume: l.volume, Epoch: l.epoch, Count: 1, Length: min(need, layout.MaxShardLength), Avoid: avoid})
	if err != nil {
		return nil, errs.Wrap(err, "allocate a segment for the log's tail")
	}
	if len(r.List) != 1 {
		return nil, errs.New(errs.Internal, "allocate a segment for the log's tail", "%d segments came", len(r.List))
	}
	l.c.learn(r.List)
	return r.List[0], nil
}

// readStripe gives a standing stripe's payload from the fenced shards that have
// it for sure, decoding what they lack.
func (l lease) readStripe(f *Fiber, s *Segment, t recovery.Tail) ([][]byte, error) {
	h := t.Header
	if h.Blocks == 0 {
		return nil, nil
	}
	units := make([][]byte, s.Geometry.Shards())
	var have layout.Mask
	for m := t.Have; m != 0 && have.Count() < h.Shape.Data.Count(); m &= m - 1 {
		shard, _ := m.Nth(0)
		unit, err := l.readUnit(f, s, h, shard)
		if err != nil {
			continue // the count below tells whether the others are enough
		}
		units[shard], have = unit, have.With(shard)
	}
	want := h.Shape.Data &^ have
	for m := want; m != 0; m &= m - 1 {
		shard, _ := m.Nth(0)
		units[shard] = make([]byte, h.Shape.Unit)
	}
	coder, err := l.c.opts.Coders.For(s.Geometry)
	if err != nil {
		return nil, err
	}
	if want != 0 {
		if err := coder.Reconstruct(units, have, s.Geometry.DataMask()&^h.Shape.Data, want); err != nil {
			return nil, err
		}
	}
	for m := h.Shape.Data; m != 0; m &= m - 1 {
		shard, _ := m.Nth(0)
		if err := checkUnit(h, shard, units[shard]); err != nil {
			return nil, err
		}
	}
	return build.Payload(nil, h, units), nil
}

// readUnit reads one whole unit of a fenced shard and checks it.
func (l lease) readUnit(f *Fiber, s *Segment, h *stripe.Header, shard layout.ShardIndex) ([]byte, error) {
	r, err := l.c.chunkWait(f, s.Shards[shard].Server, &Read{Ref: s.ref(shard), Epoch: l.epoch, Recovery: true,
		Ranges: []frame.ReadRange{{Offset: h.Offset, Length: h.Shape.Unit}}})
	if err != nil {
		return nil, err
	}
	return r.Bytes, checkUnit(h, shard, r.Bytes)
}

// checkUnit compares a unit with the checksums in its stripe's header.
func checkUnit(h *stripe.Header, shard layout.ShardIndex, unit []byte) error {
	for i, want := range h.UnitCRCs(shard) {
		if stripe.BlockCRC(unit[i*layout.BlockSize:][:layout.BlockSize]) != want {
			return errs.New(errs.Corrupt, "", "block %d of stripe %d's unit in shard %d/%d has a wrong checksum", i, h.Seq, h.Segment, shard)
		}
	}
	return nil
}

// appendDurably sends one stripe to all its participants and waits until each
// has it durably. failed names the servers that did not take it.
func (l lease) appendDurably(f *Fiber, to *Segment, h *stripe.Header, payload [][]byte) (failed []layout.ServerID, err error) {
	units, err := l.c.opts.Builder.Build(h, payload)
	if err != nil {
		return nil, err
	}
	defer units.Release()
	left := h.Participants().Count()
	ok := f.Wait(func(done func()) {
		for m := h.Participants(); m != 0; m &= m - 1 {
			h.Shard, _ = m.Nth(0)
			server := to.Shards[h.Shard].Server
			request := &Append{Ref: to.ref(h.Shard), Epoch: l.epoch, Header: h.AppendTo(nil), Payload: bytes.Join(units.Of(h.Shard), nil), Durable: true}
			l.c.chunk(server, request, func(_ *ChunkReply, e error) {
				if e != nil {
					failed, err = append(failed, server), errs.Wrap(e, "server %d", server)
				}
				if left--; left == 0 {
					done()
				}
			})
		}
	})
	if !ok {
		return failed, errKilled
	}
	return failed, err
}
