package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// script runs the command language of testdata:
//
//	write segment=1 geometry=4+2 blocks=32 times=8    append stripes to the volume
//	read start=0 count=256 [down=1]                   start a read
//	reply request=0 [corrupt=3] [err=unavailable]     what a request came to
//	late request=0
//	refreshed segment=1 [err=unavailable]
//	decoded group=0 [err=corrupt]
//	abort err=deadline
//
// Each event prints the actions that follow.
type script struct {
	op     Op
	blocks []place // of the volume, in order
	next   map[layout.SegmentID]layout.ShardOffset
	seq    layout.Seq
}

// place is where a block of the volume lies.
type place struct {
	stripe *stripe.Header
	index  layout.BlockCount
}

func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{next: map[layout.SegmentID]layout.ShardOffset{}}
		datadriven.RunTest(t, path, s.run)
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var actions []Action
	switch d.Cmd {
	case "reset":
		*s = script{next: map[layout.SegmentID]layout.ShardOffset{}}
		return ""
	case "write":
		s.write(t, d)
		return ""
	case "read":
		actions = s.op.Start(1, s.pieces(t, d))
	case "reply":
		actions = s.reply(t, d)
	case "late":
		actions = s.op.Late(number(t, d, "request"))
	case "refreshed":
		actions = s.op.Refreshed(layout.SegmentID(number(t, d, "segment")), kindOf(t, d))
	case "decoded":
		actions = s.op.Decoded(&s.op.groups[number(t, d, "group")].public, kindOf(t, d))
	case "abort":
		actions = s.op.Abort(kindOf(t, d))
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	return tell(actions, d.HasArg("short"))
}

// tell prints actions; short ones only count ranges and spans.
func tell(actions []Action, short bool) string {
	var b strings.Builder
	for _, a := range actions {
		if short && a.Kind == Send {
			r := a.Request
			fmt.Fprintf(&b, "send %d: shard %d/%d from %d: %d KiB in %d ranges, %d spans\n",
				r.ID, r.Segment, r.Shard, r.Ranges[0].Offset, r.Bytes()>>10, len(r.Ranges), len(r.Scatter))
			continue
		}
		fmt.Fprintln(&b, a)
	}
	return b.String()
}

func number(t *testing.T, d *datadriven.TestData, key string) (n int) {
	d.ScanArgs(t, key, &n)
	return n
}

func kindOf(t *testing.T, d *datadriven.TestData) error {
	var name string
	if d.MaybeScanArgs(t, "err", &name); name == "" {
		return nil
	}
	for k := errs.OK; k <= errs.OutOfRange; k++ {
		if k.String() == name {
			return errs.New(k, "", "as scripted")
		}
	}
	t.Fatalf("no kind %q", name)
	return nil
}

func (s *script) write(t *testing.T, d *datadriven.TestData) {
	var geometry string
	d.ScanArgs(t, "geometry", &geometry)
	var g layout.Geometry
	if _, err := fmt.Sscanf(geometry, "%d+%d", &g.K, &g.M); err != nil {
		t.Fatal(err)
	}
	id := layout.SegmentID(number(t, d, "segment"))
	times := 1
	d.MaybeScanArgs(t, "times", &times)
	for range times {
		s.seq++
		n := layout.BlockCount(number(t, d, "blocks"))
		h := &stripe.Header{Segment: id, Geometry: g, Offset: s.next[id], Shape: g.ShapeFor(n, s.seq), Blocks: uint32(n), Epoch: 1, Seq: s.seq}
		s.next[id] = h.End()
		for i := range n {
			s.blocks = append(s.blocks, place{h, i})
		}
	}
}

// pieces is what an extent map gives for a range of blocks.
func (s *script) pieces(t *testing.T, d *datadriven.TestData) []Piece {
	var down layout.Mask
	for _, a := range d.CmdArgs {
		if a.Key == "down" {
			for _, v := range a.Vals {
				var i layout.ShardIndex
				fmt.Sscan(v, &i)
				down = down.With(i)
			}
		}
	}
	start := number(t, d, "start")
	return piecesOf(s.blocks[start:start+number(t, d, "count")], down)
}

func piecesOf(blocks []place, down layout.Mask) (pieces []Piece) {
	for i := 0; i < len(blocks); {
		first, n := blocks[i], 1
		for i+n < len(blocks) && blocks[i+n].stripe == first.stripe && blocks[i+n].index == first.index+layout.BlockCount(n) {
			n++
		}
		h := first.stripe
		pieces = append(pieces, Piece{Segment: h.Segment, Volume: h.Volume, Geometry: h.Geometry, Offset: h.Offset, Shape: h.Shape,
			Index: first.index, Count: layout.BlockCount(n), Into: int64(i) * layout.BlockSize, Down: down})
		i += n
	}
	return pieces
}

func (s *script) reply(t *testing.T, d *datadriven.TestData) []Action {
	id := number(t, d, "request")
	v := Verdict{Err: kindOf(t, d)}
	for _, a := range d.CmdArgs {
		if a.Key == "corrupt" {
			for _, x := range a.Vals {
				var n int
				fmt.Sscan(x, &n)
				v.Bad = append(v.Bad, n)
			}
		}
	}
	seq := layout.Seq(1)
	d.MaybeScanArgs(t, "seq", &seq)
	for range s.op.requests[id].runs {
		v.headers = append(v.headers, &stripe.Header{Epoch: 1, Seq: seq})
	}
	return s.op.Replied(id, v)
}
