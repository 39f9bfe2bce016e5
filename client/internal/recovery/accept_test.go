package recovery_test

import (
	"testing"

	"strake/client/internal/recovery"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// narrow is a stripe of one block at seq in a 2+1 segment: data shard seq mod 2 and
// the parity shard take part.
func narrow(segment layout.SegmentID, seq, flushed layout.Seq) *stripe.Header {
	g := layout.Geometry{K: 2, M: 1}
	h := &stripe.Header{Epoch: 1, Seq: seq, Segment: segment, Geometry: g, Shape: g.ShapeFor(1, seq), Flushed: flushed, Blocks: 1,
		Offset: layout.ShardOffset(seq) * layout.BlockSize}
	h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
	return h
}

// heldBy lists stripes 1 to last, all durable, on those shards of a segment that have
// not gone.
func heldBy(last layout.Seq, gone layout.Mask) recovery.Input {
	s := recovery.Segment{ID: 7, Geometry: layout.Geometry{K: 2, M: 1}}
	for i := range layout.ShardIndex(3) {
		sh := recovery.Shard{Server: layout.ServerID(i + 1), State: recovery.Listed}
		if gone.Has(i) {
			sh = recovery.Shard{Server: layout.ServerID(i + 1), State: recovery.Silent, Reason: "connection refused"}
		}
		for seq := layout.Seq(1); seq <= last && !gone.Has(i); seq++ {
			if h := narrow(7, seq, 0); h.Participants().Has(i) {
				sh.Stripes = append(sh.Stripes, recovery.Stripe{Seq: seq, Header: h})
			}
		}
		s.Shards = append(s.Shards, sh)
	}
	return recovery.Input{Segments: []recovery.Segment{s}}
}

// TestAcceptedLossEndsTheLogWhereItStands: with a data and the parity shard gone the
// log can't be decided; people who give it up keep what the other data shard proves.
func TestAcceptedLossEndsTheLogWhereItStands(t *testing.T) {
	first := narrow(7, 1, 0).Shape.Data // the data shard that has seq 1
	only, _ := first.Nth(0)
	gone := layout.Mask(0b111) &^ layout.Mask(0).With(only)
	in := heldBy(6, gone)
	if _, err := recovery.Decide(in); errs.KindOf(err) != errs.Unavailable && errs.KindOf(err) != errs.Undecided {
		t.Fatalf("without acceptance: %v", err)
	}
	accept := layout.Seq(0)
	in.Accept = &accept
	plan, err := recovery.Decide(in)
	if err != nil || plan.Cut != 1 || plan.Lost.Stripes != 2 || plan.Lost.Last != 5 || plan.Lost.Blocks != 2 {
		t.Fatalf("got cut %d, lost %+v, %v; want seq 1 to stand, 3 and 5 seen and given up", plan.Cut, plan.Lost, err)
	}
	if len(plan.Seals) != 1 || plan.Seals[0].Count != 0 || len(plan.Tail) != 1 || plan.Tail[0].Header.Seq != 1 {
		t.Fatalf("seals %+v, tail %+v: seq 1 is to be copied, as a participant lacks it", plan.Seals, plan.Tail)
	}
	if len(plan.InPlace) != 1 || plan.InPlace[0].Count != 1 {
		t.Fatalf("in place: %+v; with nowhere to copy to, the seal holds seq 1 where it lies", plan.InPlace)
	}
	accept = 2
	if _, err := recovery.Decide(in); errs.KindOf(err) != errs.InvalidArgument {
		t.Fatalf("more would be lost than was accepted: %v", err)
	}
}

// TestAcceptanceLosesNothingThatStands: while enough answer, the decision with and
// without it is the same.
func TestAcceptanceLosesNothingThatStands(t *testing.T) {
	for _, gone := range []layout.Mask{0, 0b001, 0b010, 0b100} {
		in := heldBy(6, gone)
		want, err := recovery.Decide(in)
		if err != nil {
			t.Fatalf("gone %b: %v", gone, err)
		}
		accept := layout.Seq(0)
		in.Accept = &accept
		got, err := recovery.Decide(in)
		if err != nil || got.Cut != want.Cut || got.Cut != 6 || got.Lost.Stripes != 0 || len(got.Tail) != len(want.Tail) || got.Seals[0].Count != want.Seals[0].Count {
			t.Errorf("gone %b: got %+v, %v; want %+v", gone, got, err, want)
		}
	}
}
