package extent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"strake/internal/layout"
	"strake/proto/stripe"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the golden scripts in testdata/script. A range is
// `start+count`. Commands:
//
//	write R... | discard R | zero R | relocate R...   one stripe, applied
//	lookup R | current R | live | state
//	move seq=N                                        append a stripe again elsewhere
//	freeze | next [limit=N] | commit | abort          a checkpoint, step by step
//	crash [cut=N] | evict | settle | forget N... | vacate N...
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{world: newWorld(t, 1, 1<<20)}
		s.m.limits = [2]int{120, 190} // a few rows a page, so that small examples have a tree
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	*world
	c     *Checkpoint
	found []Extent // by the last lookup
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	s.loads = 0
	switch d.Cmd {
	case "write", "discard", "zero", "relocate":
		s.stripe(&out, d)
	case "lookup", "current":
		s.look(&out, d)
	case "live":
		s.liveTable(&out)
	case "state":
		dirty := s.m.Dirty()
		fmt.Fprintf(&out, "applied %d, root covers %d, %d runs of %d headers, %d blocks unsettled, %d pages loaded\n",
			s.m.Applied(), s.m.Covers(), dirty.Runs, dirty.Headers, s.m.Unsettled(), len(s.m.cache.pages))
	case "move":
		n := layout.Seq(number(d, "seq"))
		s.k = 2
		s.move(n)
		fmt.Fprintln(&out, describe(s.headers[n-1]))
	case "crash":
		cut := s.m.Applied()
		if d.HasArg("cut") {
			cut = layout.Seq(number(d, "cut"))
		}
		s.crash(cut)
		s.c = nil
	case "evict":
		fmt.Fprintf(&out, "%d pages went\n", s.evictAll())
	case "settle":
		s.load(s.m.Settle(10))
		s.load(s.m.Settle(10))
	case "forget", "vacate":
		for _, a := range d.CmdArgs {
			n, _ := strconv.Atoi(a.Key)
			map[string]func(...layout.SegmentID){"forget": s.m.Forget, "vacate": s.m.Vacate}[d.Cmd](layout.SegmentID(n))
		}
	default:
		s.checkpointing(&out, d)
	}
	if s.loads > 0 {
		fmt.Fprintf(&out, "(%d pages were loaded)\n", s.loads)
	}
	if err := s.m.Check(); err != nil {
		fmt.Fprintln(&out, err)
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func (s *script) stripe(out *strings.Builder, d *datadriven.TestData) {
	kind := map[string]stripe.RangeKind{"discard": stripe.Discard, "zero": stripe.Zero}[d.Cmd]
	if kind == 0 {
		kind = stripe.Write
	}
	var ranges []stripe.Range
	for _, a := range d.CmdArgs {
		r := parseRange(a.Key)
		ranges = append(ranges, stripe.Range{Start: r.Start, Count: uint32(r.Count), Kind: kind})
	}
	fmt.Fprintln(out, describe(s.write(ranges...)))
}

func describe(h *stripe.Header) string {
	return fmt.Sprintf("seq %d: %d blocks at %d:%d, unit %d, data %04b", h.Seq, h.Blocks, h.Segment, h.Offset, h.Shape.Unit, h.Shape.Data)
}

func (s *script) look(out *strings.Builder, d *datadriven.TestData) {
	if d.Cmd == "lookup" {
		s.found = s.lookup(parseRange(d.CmdArgs[0].Key))
		show(out, s.found)
		return
	}
	for _, e := range s.found {
		list, need := s.m.Current(e, nil)
		for ; need != nil; list, need = s.m.Current(e, nil) {
			s.load(need)
		}
		show(out, list)
	}
}

func show(out *strings.Builder, list []Extent) {
	for _, e := range list {
		fmt.Fprintf(out, "%d+%d ", e.Start, e.Count)
		if e.Zero {
			fmt.Fprintln(out, "zeros")
			continue
		}
		fmt.Fprintf(out, "%d:%d block %d\n", e.Place.Segment, e.Place.Offset, e.Place.Index)
	}
}

func (s *script) liveTable(out *strings.Builder) {
	list, need := s.m.Segments(0, 100, nil)
	for ; need != nil; list, need = s.m.Segments(0, 100, nil) {
		s.load(need)
	}
	for _, l := range list {
		fmt.Fprintf(out, "segment %d: %d\n", l.Segment, l.Blocks)
	}
	pages, need := s.m.MapSegments()
	s.load(need)
	for _, l := range pages {
		fmt.Fprintf(out, "map segment %d: %d\n", l.Segment, l.Blocks)
	}
}

func (s *script) checkpointing(out *strings.Builder, d *datadriven.TestData) {
	switch d.Cmd {
	case "freeze":
		s.c = s.freeze()
		fmt.Fprintf(out, "covers %d\n", s.c.Covers())
	case "next":
		limit := 1 << 20
		if d.HasArg("limit") {
			limit = number(d, "limit")
		}
		s.next(out, limit)
	case "commit":
		s.commit(s.c)
		fmt.Fprintf(out, "root of %d bytes covers %d; retired %v, of the map %v\n", len(s.root), s.rooted, s.c.Retired(), s.c.RetiredMap())
	case "abort":
		s.m.Aborted(s.c)
	default:
		fmt.Fprintln(out, "no such command")
	}
}

func (s *script) next(out *strings.Builder, limit int) {
	pages, need, err := s.c.Next(limit, s.place)
	if err != nil {
		fmt.Fprintln(out, err)
	}
	for _, p := range pages {
		s.pages[p.Ref.key()] = p.Data
		kind := [...]string{KindRoot: "root", KindExtent: "extents", KindLive: "live"}[p.Ref.Kind]
		fmt.Fprintf(out, "%s level %d from %d at %d:%d block %d\n", kind, p.Ref.Level, p.Ref.First, p.Ref.Segment, p.Ref.Offset, p.Ref.Index)
	}
	s.load(need)
	if s.c.Done() {
		fmt.Fprintln(out, "done")
	}
}

func number(d *datadriven.TestData, key string) (n int) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			n, _ = strconv.Atoi(a.Vals[0])
		}
	}
	return n
}

func parseRange(s string) (r layout.Range) {
	fmt.Sscanf(s, "%d+%d", &r.Start, &r.Count)
	return r
}

func (s *script) evictAll() int {
	n := len(s.m.cache.pages)
	s.m.Evict(0)
	return n - len(s.m.cache.pages)
}
