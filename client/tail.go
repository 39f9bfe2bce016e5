package client

import (
	"context"

	"strake/client/internal/recovery"
	"strake/client/internal/transport"
	"strake/internal/erasure/build"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/frame"
	"strake/proto/pb"
	"strake/proto/stripe"
)

// tailSegment allocates a segment that the whole tail fits in.
func (l lease) tailSegment(ctx context.Context, tail []recovery.Tail, avoid []layout.ServerID) (*segment, error) {
	var need layout.ShardOffset
	for _, t := range tail {
		// With k = 1, the narrowest that a segment may be, a unit holds a whole stripe.
		need += layout.ShardOffset(layout.BlockCount(t.Header.Blocks).Bytes())
	}
	request := &pb.AllocateSegmentsRequest{Command: newCommand(), Session: uint64(l.session), Volume: uint64(l.volume),
		Epoch: uint64(l.epoch), Count: 1, ShardLength: uint64(min(need, layout.MaxShardLength)), Urgent: true}
	for _, s := range avoid {
		request.AvoidServers = append(request.AvoidServers, uint64(s))
	}
	ctx, cancel := context.WithTimeout(ctx, allocateTimeout)
	defer cancel()
	var r *pb.AllocateSegmentsReply
	err := l.cell.meta.DoWithin(ctx, allocateTimeout, func(ctx context.Context, m pb.MetaClient) (err error) {
		r, err = m.AllocateSegments(ctx, request)
		return err
	})
	if err != nil {
		return nil, errs.Wrap(err, "allocate a segment for the log's tail")
	}
	if len(r.Segments) != 1 {
		return nil, errs.New(errs.Internal, "allocate a segment for the log's tail", "%d segments came", len(r.Segments))
	}
	return l.cell.places.learn(r.Segments, r.Servers)[0], nil
}

// readStripe gives a standing stripe's payload from the fenced shards that have
// it for sure, decoding what they lack.
func (l lease) readStripe(ctx context.Context, s *segment, t recovery.Tail) ([][]byte, error) {
	h := t.Header
	if h.Blocks == 0 {
		return nil, nil
	}
	units := make([][]byte, s.geometry.Shards())
	var have layout.Mask
	for m := t.Have; m != 0 && have.Count() < h.Shape.Data.Count(); m &= m - 1 {
		shard, _ := m.Nth(0)
		unit, err := l.readUnit(ctx, s, h, shard)
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
	coder, err := l.cell.shards.coders.For(s.geometry)
	if err != nil {
		return nil, err
	}
	if want != 0 {
		if err := coder.Reconstruct(units, have, s.geometry.DataMask()&^h.Shape.Data, want); err != nil {
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
func (l lease) readUnit(ctx context.Context, s *segment, h *stripe.Header, shard layout.ShardIndex) ([]byte, error) {
	unit := make([]byte, h.Shape.Unit)
	body := frame.ReadBody{Shard: s.ref(shard), Ranges: []frame.ReadRange{{Offset: h.Offset, Length: h.Shape.Unit}}}
	call := &transport.Call{
		Request: frame.Request{Kind: frame.Read, Flags: frame.Recovery | frame.NoCRCs, Class: layout.ClassBackground, Epoch: l.epoch},
		Meta:    body.AppendTo(nil), Into: [][]byte{unit},
	}
	if err := l.cell.shards.doWithin(ctx, tailTimeout, target{s.shards[shard].server, s.id}, call); err != nil {
		return nil, err
	}
	return unit, checkUnit(h, shard, unit)
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
