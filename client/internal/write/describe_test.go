package write_test

import (
	"fmt"
	"strings"

	"strake/client/internal/write"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// describe tells an action as one line of a history.
func describe(a write.Action) string {
	switch a.Kind {
	case write.Cut:
		return "cut " + describeStripe(a.Stripe)
	case write.Move:
		return fmt.Sprintf("move from segment %d: %s", a.From, describeStripe(a.Stripe))
	case write.Retry:
		return fmt.Sprintf("send seq %d again to shards %s", a.Stripe.Seq(), shards(a.Shards))
	case write.SendSync:
		return fmt.Sprintf("sync %d: server %d, incarnation %d, shards%s", a.Sync.ID, a.Sync.Server, a.Sync.Incarnation, refs(a.Sync))
	case write.Allocate:
		s := fmt.Sprintf("allocate %d: %d segments", a.Allocation.Request, a.Allocation.Count)
		if a.Allocation.MinLength > 0 {
			s += fmt.Sprintf(" of %d rows", a.Allocation.MinLength/layout.BlockSize)
		}
		if len(a.Allocation.Avoid) > 0 {
			s += fmt.Sprintf(", not on %v", a.Allocation.Avoid)
		}
		if a.Allocation.Urgent {
			s += ", from the reserve"
		}
		return s
	case write.SealSegment:
		return fmt.Sprintf("seal segment %d at %d stripes, seq %d to %d", a.Seal.Segment, a.Seal.Count, a.Seal.First, a.Seal.Last)
	case write.RequestMove:
		return fmt.Sprintf("ask to move from server %d", a.Server)
	case write.Acked:
		return fmt.Sprintf("acknowledged to seq %d", a.Seq)
	case write.Flushed:
		return fmt.Sprintf("flushed to seq %d", a.Seq)
	case write.WriteDone:
		return fmt.Sprintf("write %d: %s", a.Write, outcome(a.Err))
	case write.FlushDone:
		return fmt.Sprintf("flush %d: %s", a.Flush, outcome(a.Err))
	case write.Wait:
		return "wait: the memory cap is reached"
	case write.Resume:
		return "resume"
	case write.Fail:
		return "the writer ends: " + a.Err.Error()
	case write.Released:
		return fmt.Sprintf("released at seq %d", a.Seq)
	case write.Checkpointed:
		s := "checkpointed:"
		for _, l := range a.Lists {
			s += fmt.Sprintf(" segment %d holds %d to seq %d;", l.Segment, l.Count, l.Last)
		}
		return s
	case write.Aborted:
		return "aborted: " + a.Err.Error()
	}
	return fmt.Sprintf("kind %d", a.Kind)
}

func outcome(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

func describeStripe(s *write.Stripe) string {
	h := s.Header
	out := fmt.Sprintf("seq %d copy %d: %s, unit %d, segment %d row %d, shards %s, flushed %d", h.Seq, s.Copy, h.Geometry,
		h.Shape.UnitBlocks(), h.Segment, h.Offset/layout.BlockSize, shards(h.Participants()), h.Flushed)
	for _, r := range h.Ranges {
		out += fmt.Sprintf(" %s%d+%d", map[stripe.RangeKind]string{stripe.Write: "w", stripe.Discard: "d", stripe.Zero: "z"}[r.Kind], r.Start, r.Count)
	}
	for _, p := range s.Pieces {
		out += fmt.Sprintf(" (write %d from %d: %d at %d)", p.Write, p.First, p.Blocks, p.At)
	}
	if s.Durable {
		out += " durable"
	}
	return out
}

func shards(m layout.Mask) string {
	var out []string
	for ; m != 0; m &= m - 1 {
		i, _ := m.Nth(0)
		out = append(out, fmt.Sprint(i))
	}
	return strings.Join(out, ",")
}

func refs(y *write.Sync) (out string) {
	for _, r := range y.Shards {
		out += " " + r.ShardKey.String()
	}
	return out
}
