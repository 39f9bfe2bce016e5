package write_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// TestHistories runs the scripts in testdata: each line is an input, what it
// printed are the actions. See golden for the commands.
func TestHistories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		g := &golden{}
		datadriven.RunTest(t, path, g.run)
	})
}

// golden is a scripted shell. Block ranges are written 'w10+4' (write 4 blocks at
// 10), 'd10+4' (discard), 'z10+4' (zero); shards of a grant are server numbers,
// each server with one device of the same number.
type golden struct {
	c      *write.Core
	now    time.Duration
	copies map[layout.Seq][]*write.Stripe // in the order sent
	out    strings.Builder
}

func (g *golden) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		g.open(t, d)
	case "at":
		g.now = duration(t, d.CmdArgs[0].Key)
		g.c.Tick(g.now)
	default:
		for _, line := range strings.Split(d.Input, "\n") {
			if err := g.line(t, strings.Fields(line)); err != nil {
				fmt.Fprintf(&g.out, "refused: %v\n", err)
			}
			g.take()
		}
	}
	if err := g.c.Check(); err != nil {
		t.Fatal(err)
	}
	g.take()
	defer g.out.Reset()
	if g.out.Len() == 0 {
		return "nothing\n"
	}
	return g.out.String()
}

func (g *golden) open(t *testing.T, d *datadriven.TestData) {
	cfg := write.Config{Cell: 1, Volume: 1, Epoch: 1}
	var k, m int
	var blocks int64
	d.ScanArgs(t, "k", &k)
	d.ScanArgs(t, "m", &m)
	d.MaybeScanArgs(t, "cap", &blocks)
	d.MaybeScanArgs(t, "inflight", &cfg.InFlight)
	cfg.Geometry = layout.Geometry{K: uint8(k), M: uint8(m)}
	cfg.MemoryCap = blocks * layout.BlockSize
	*g = golden{c: write.New(cfg), now: time.Second, copies: map[layout.Seq][]*write.Stripe{}}
}

// line is one input.
func (g *golden) line(t *testing.T, f []string) error {
	arg := func(i int) uint64 { return number(t, f[i]) }
	switch f[0] {
	case "write":
		return g.write(t, f[1:])
	case "flush":
		g.c.Flush(g.now, write.FlushID(arg(1)))
	case "flush-acked":
		g.c.FlushAcked(g.now, write.FlushID(arg(1)))
	case "grant": // grant REQUEST, then for each: SEGMENT k+m rows server,server,..
		var out []write.Segment
		for i := 2; i < len(f); i += 4 {
			out = append(out, segment(t, f[i:]))
		}
		g.c.Granted(g.now, write.RequestID(arg(1)), out, nil)
	case "no-grant":
		g.c.Granted(g.now, write.RequestID(arg(1)), nil, kind(f[2]))
	case "stored": // stored SEQ[.COPY] incarnation shard..; all participants when none is named
		g.stored(t, f)
	case "refused": // refused SEQ[.COPY] shard KIND
		st := g.copy(t, f[1])
		g.c.Appended(g.now, write.Reply{Seq: st.Seq(), Copy: st.Copy, Shard: layout.ShardIndex(arg(2))}, kind(f[3]))
	case "synced":
		for i := range f[1:] {
			g.c.Synced(g.now, write.SyncID(arg(i+1)), nil)
		}
	case "not-synced":
		g.c.Synced(g.now, write.SyncID(arg(1)), kind(f[2]))
	case "sealed":
		g.c.Sealed(g.now, layout.SegmentID(arg(1)), nil)
	case "not-sealed":
		g.c.Sealed(g.now, layout.SegmentID(arg(1)), kind(f[2]))
	case "move-granted":
		g.c.MoveGranted(g.now, layout.ServerID(arg(1)), true, 0)
	case "move-refused":
		g.c.MoveGranted(g.now, layout.ServerID(arg(1)), false, duration(t, f[2]))
	case "down":
		g.c.ServerDown(g.now, layout.ServerID(arg(1)))
	case "waits":
		server, wait, ok := g.c.Waits(g.now)
		fmt.Fprintf(&g.out, "waits for server %d, for %v: %v\n", server, wait, ok)
	case "release":
		g.c.Release(g.now)
	default:
		t.Fatalf("no command %q", f[0])
	}
	return nil
}

func (g *golden) write(t *testing.T, f []string) error {
	w := write.Write{ID: write.WriteID(number(t, f[0]))}
	for _, r := range f[1:] {
		if r == "durable" {
			w.Durable = true
			continue
		}
		start, count, _ := strings.Cut(r[1:], "+")
		k := stripe.RangeKind(1 + strings.Index("wdz", r[:1]))
		w.Ranges = append(w.Ranges, stripe.Range{Start: layout.BlockNumber(number(t, start)), Count: uint32(number(t, count)), Kind: k})
	}
	return g.c.Submit(g.now, w)
}

// stored answers for some participants, or for all.
func (g *golden) stored(t *testing.T, f []string) {
	st := g.copy(t, f[1])
	inc := layout.Incarnation(number(t, f[2]))
	shards := st.Header.Participants()
	if len(f) > 3 {
		shards = 0
		for _, s := range f[3:] {
			shards = shards.With(layout.ShardIndex(number(t, s)))
		}
	}
	for ; shards != 0; shards &= shards - 1 {
		i, _ := shards.Nth(0)
		g.c.Appended(g.now, write.Reply{Seq: st.Seq(), Copy: st.Copy, Shard: i, Incarnation: inc}, nil)
	}
}

// copy finds a copy that was sent, the latest unless one is named.
func (g *golden) copy(t *testing.T, arg string) *write.Stripe {
	seq, n, named := strings.Cut(arg, ".")
	sent := g.copies[layout.Seq(number(t, seq))]
	if named {
		return sent[number(t, n)-1]
	}
	return sent[len(sent)-1]
}

// take prints the actions and does the encoder's part.
func (g *golden) take() {
	for _, a := range g.c.Take(nil) {
		g.out.WriteString(describe(a) + "\n")
		if a.Kind == write.Cut || a.Kind == write.Move {
			h := a.Stripe.Header
			h.CRCs = make([]uint32, h.Participants().Count()*int(h.Shape.UnitBlocks()))
			g.copies[h.Seq] = append(g.copies[h.Seq], a.Stripe)
		}
	}
}

func segment(t *testing.T, f []string) write.Segment {
	var k, m uint8
	if _, err := fmt.Sscanf(f[1], "%d+%d", &k, &m); err != nil {
		t.Fatal(err)
	}
	s := write.Segment{ID: layout.SegmentID(number(t, f[0])), Geometry: layout.Geometry{K: k, M: m}, Length: layout.ShardOffset(number(t, f[2])) * layout.BlockSize}
	for _, v := range strings.Split(f[3], ",") {
		n := number(t, v)
		s.Shards = append(s.Shards, write.Shard{Server: layout.ServerID(n), Device: layout.DeviceID(n), Generation: 1})
	}
	return s
}

func number(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func kind(name string) error {
	for k := errs.OK; k <= errs.OutOfRange; k++ {
		if k.String() == name {
			return k
		}
	}
	panic("no kind " + name)
}
