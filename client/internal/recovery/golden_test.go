package recovery_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"strake/client/internal/recovery"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// TestHistories runs the scripts in testdata. `decide cut=N covers=N` lists answers:
//
//	sealed 4-9[/COUNT]          a sealed segment: of seqs 4 to 9, all or so many
//	segment 7 2+1               opens a segment; then one line for each shard:
//	shard SERVER listed 1 2n 3x  it has 1 and 2, of 3 it can't tell; 2 is a
//	                            narrow stripe (data shard seq mod k), 1 a full one
//	shard SERVER silent|cannot-tell [has..]
//
// '@F' after a seq gives the flushed seq in its header.
func TestHistories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			in := parse(t, d)
			plan, err := recovery.Decide(in)
			if err != nil {
				return err.Error() + "\n"
			}
			return tell(in, plan)
		})
	})
}

func tell(in recovery.Input, p recovery.Plan) string {
	out := fmt.Sprintf("the log ends at %d, flushed %d\n", p.Cut, p.Flushed)
	for _, s := range p.Seals {
		out += fmt.Sprintf("seal segment %d at %d stripes, seq %d to %d\n", s.Segment, s.Count, s.First, s.Last)
	}
	for _, t := range p.Tail {
		out += fmt.Sprintf("copy seq %d again, from segment %d shards %b\n", t.Header.Seq, t.Segment, t.Have)
	}
	return out
}

func parse(t *testing.T, d *datadriven.TestData) (in recovery.Input) {
	if d.HasArg("cut") {
		var cut uint64
		d.ScanArgs(t, "cut", &cut)
		in.LastCut = layout.Seq(cut)
	}
	if d.HasArg("covers") {
		var covers uint64
		d.ScanArgs(t, "covers", &covers)
		in.Covers = layout.Seq(covers)
	}
	for _, line := range strings.Split(d.Input, "\n") {
		f := strings.Fields(line)
		switch f[0] {
		case "sealed":
			in.Sealed = append(in.Sealed, sealedOf(t, f[1]))
		case "segment":
			s := recovery.Segment{ID: layout.SegmentID(seqOf(t, f[1]))}
			if _, err := fmt.Sscanf(f[2], "%d+%d", &s.Geometry.K, &s.Geometry.M); err != nil {
				t.Fatal(err)
			}
			in.Segments = append(in.Segments, s)
		case "shard":
			s := &in.Segments[len(in.Segments)-1]
			s.Shards = append(s.Shards, shardOf(t, s, f[1:]))
		}
	}
	return in
}

func sealedOf(t *testing.T, f string) recovery.Sealed {
	f, count, some := strings.Cut(f, "/")
	first, last, _ := strings.Cut(f, "-")
	s := recovery.Sealed{First: seqOf(t, first), Last: seqOf(t, last)}
	s.Count = uint32(s.Last - s.First + 1)
	if some {
		s.Count = uint32(seqOf(t, count))
	}
	return s
}

func shardOf(t *testing.T, s *recovery.Segment, f []string) recovery.Shard {
	sh := recovery.Shard{Server: layout.ServerID(seqOf(t, f[0]))}
	sh.State = map[string]recovery.State{"listed": recovery.Listed, "silent": recovery.Silent, "cannot-tell": recovery.CannotTell}[f[1]]
	if sh.State == recovery.CannotTell {
		sh.Reason = "unreadable index"
	}
	for _, x := range f[2:] {
		x, flushed, _ := strings.Cut(x, "@")
		st := recovery.Stripe{Seq: seqOf(t, strings.TrimRight(x, "nx"))}
		if strings.HasSuffix(x, "x") {
			st.Reason = "CRC differs"
		} else {
			n := layout.BlockCount(s.Geometry.K)
			if strings.HasSuffix(x, "n") {
				n = 1
			}
			st.Header = &stripe.Header{Segment: s.ID, Geometry: s.Geometry, Epoch: 1, Seq: st.Seq, Shape: s.Geometry.ShapeFor(n, st.Seq)}
			if flushed != "" {
				st.Header.Flushed = seqOf(t, flushed)
			}
		}
		sh.Stripes = append(sh.Stripes, st)
	}
	return sh
}

func seqOf(t *testing.T, s string) layout.Seq {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return layout.Seq(n)
}

func TestReplayTakesTheLatestCopyWithinTheCuts(t *testing.T) {
	h := func(epoch layout.Epoch, seq layout.Seq, seg layout.SegmentID) *stripe.Header {
		return &stripe.Header{Epoch: epoch, Seq: seq, Segment: seg}
	}
	got := recovery.Replay([]*stripe.Header{h(1, 3, 5), h(1, 1, 5), h(1, 2, 5), h(1, 2, 6), h(2, 3, 4), h(1, 4, 6), h(2, 4, 9), h(1, 5, 6), h(1, 1, 5)},
		[]recovery.Cut{{Before: 2, Seq: 3}})
	want := "1/1/5 1/2/6 2/3/4 2/4/9 "
	text := ""
	for _, h := range got {
		text += fmt.Sprintf("%d/%d/%d ", h.Epoch, h.Seq, h.Segment)
	}
	if text != want {
		t.Fatalf("got %s, want %s (epoch/seq/segment)", text, want)
	}
}
