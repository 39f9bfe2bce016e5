package write_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"strake/client/internal/write"
	"strake/client/internal/write/writetest"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

func TestMapCheckpointsKeepTheRules(t *testing.T) {
	aborted, recorded := 0, 0
	for seed := uint64(1); seed <= 600; seed++ {
		m := newMapShell(seed)
		if err := m.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		aborted += m.aborted
		recorded += m.roots
	}
	if aborted == 0 || recorded == 0 {
		t.Fatalf("%d aborted, %d recorded: the histories are too tame", aborted, recorded)
	}
}

// mapShell drives a MapWriter on a cell: checkpoint after checkpoint, with
// servers that come and go.
type mapShell struct {
	r        *rand.Rand
	cell     *writetest.Cell
	w        *write.MapWriter
	now      time.Duration
	want     layout.Geometry
	pages    []layout.BlockCount // of the checkpoint under way
	placed   int
	cut      []*write.Stripe // of the checkpoint under way
	sent     []send          // appends to be done
	recorded map[layout.SegmentID]stripe.Seal
	sealed   map[layout.SegmentID]bool
	active   bool
	aborted  int
	roots    int
	released bool
	broken   error
}

type send struct {
	st *write.Stripe
	i  layout.ShardIndex
}

func newMapShell(seed uint64) *mapShell {
	r := rand.New(rand.NewPCG(seed, 3))
	g := []layout.Geometry{{K: 4, M: 2}, {K: 2, M: 1}, {K: 1, M: 1}}[r.IntN(3)]
	m := &mapShell{r: r, cell: writetest.NewCell(r, g.Shards()+1), want: g,
		recorded: map[layout.SegmentID]stripe.Seal{}, sealed: map[layout.SegmentID]bool{}}
	m.cell.Rows = 40
	m.w = write.NewMap(write.Config{Epoch: 1, Geometry: g, InFlight: 4})
	return m
}

func (m *mapShell) run() error {
	for range 400 {
		m.step()
		m.take()
		if m.broken != nil {
			return m.broken
		}
	}
	for _, s := range m.cell.Servers {
		s.Down = false
	}
	m.cell.Full = false
	m.w.Release(m.now)
	for i := 0; i < 4000 && !m.released && m.broken == nil; i++ {
		m.take()
		m.answer()
		m.now += time.Millisecond
		m.w.Tick(m.now)
	}
	if !m.released && m.broken == nil {
		return fmt.Errorf("the release never ends")
	}
	return m.broken
}

func (m *mapShell) step() {
	s := m.cell.Servers[m.r.IntN(len(m.cell.Servers))]
	switch x := m.r.IntN(100); {
	case x < 2:
		s.Crash(m.r)
	case x < 4:
		s.Down = !s.Down
	case x < 5:
		m.cell.Full = !m.cell.Full
	case x < 15:
		m.now += time.Duration(m.r.IntN(20)) * time.Millisecond
		m.w.Tick(m.now)
	case x < 30 && !m.active:
		if err := m.w.Begin(m.now); err == nil {
			m.active, m.pages, m.cut, m.placed = true, nil, nil, 0
		}
	case x < 45 && m.active:
		m.place()
	case x < 50 && m.active && len(m.pages) > 0:
		m.w.Finish(m.now)
	default:
		m.answer()
	}
}

func (m *mapShell) place() {
	var pages []layout.BlockCount
	for range 1 + m.r.IntN(6) {
		pages = append(pages, layout.BlockCount(1+m.r.IntN(16)))
	}
	if err := m.w.Place(m.now, pages); err == nil {
		m.pages = append(m.pages, pages...)
	}
}

// answer does one of the appends.
func (m *mapShell) answer() {
	if len(m.sent) == 0 {
		return
	}
	n := m.r.IntN(len(m.sent))
	x := m.sent[n]
	m.sent = append(m.sent[:n], m.sent[n+1:]...)
	s := m.cell.Server(x.st.Segment.Shards[x.i].Server)
	r := write.Reply{Seq: x.st.Seq(), Copy: x.st.Copy, Shard: x.i}
	var err error
	r.Incarnation, err = s.Append(layout.ShardKey{Segment: x.st.Segment.ID, Shard: x.i}, x.st.Header, false)
	m.w.Appended(m.now, r, err)
}

func (m *mapShell) take() {
	for more := true; more; {
		actions := m.w.Take(nil)
		more = len(actions) > 0
		for _, a := range actions {
			m.act(a)
		}
		if err := m.w.Check(); err != nil {
			m.bad("%v", err)
		}
	}
}

func (m *mapShell) act(a write.Action) {
	switch a.Kind {
	case write.Cut:
		m.onCut(a)
	case write.SendSync:
		m.w.Synced(m.now, a.Sync.ID, m.cell.Server(a.Sync.Server).Sync(a.Sync, 1))
	case write.Allocate:
		granted, err := m.cell.Grant(1, m.want, a.Allocation)
		m.w.Granted(m.now, a.Allocation.Request, granted, err)
	case write.SealSegment:
		want, ok := m.recorded[a.Seal.Segment]
		if !ok {
			want = stripe.NewSeal(a.Seal.Segment, m.cell.Segments[a.Seal.Segment].Geometry)
		}
		if !reflect.DeepEqual(want, *a.Seal) {
			m.bad("segment %d is sealed at %d stripes, the root holds %d", a.Seal.Segment, a.Seal.Count, want.Count)
		}
		m.sealed[a.Seal.Segment] = true
		m.w.Sealed(m.now, a.Seal.Segment, m.cell.SealSegment(1, a.Seal))
	case write.RequestMove:
		m.w.MoveGranted(m.now, a.Server, true, 0)
	case write.Checkpointed:
		m.onCheckpointed(a.Lists)
	case write.Aborted:
		m.aborted++
		m.active = false
	case write.Released:
		m.released = true
	case write.Fail:
		m.bad("the writer ends: %v", a.Err)
	}
}

// onCut checks how the pages lie and sends the stripe.
func (m *mapShell) onCut(a write.Action) {
	st, h := a.Stripe, a.Stripe.Header
	unit := h.Shape.UnitBlocks()
	at := layout.BlockCount(0)
	for _, p := range st.Pieces {
		switch {
		case int(p.Write) != m.placed || p.Blocks != m.pages[m.placed] || p.First != 0:
			m.bad("piece %+v, page %d of %d blocks is next", p, m.placed, m.pages[m.placed])
		case p.At < at || p.At/unit != (p.At+p.Blocks-1)/unit:
			m.bad("page %d of %d blocks at %d spans units of %d", p.Write, p.Blocks, p.At, unit)
		}
		at = p.At + p.Blocks
		m.placed++
	}
	h.CRCs = make([]uint32, h.Participants().Count()*int(unit))
	checked := *h
	checked.Shard, _ = h.Participants().Nth(0)
	if err := checked.Check(); err != nil || m.sealed[h.Segment] || h.Flags != stripe.MapPage {
		m.bad("seq %d in segment %d: %v", h.Seq, h.Segment, err)
	}
	m.cut = append(m.cut, st)
	for p := a.Shards; p != 0; p &= p - 1 {
		i, _ := p.Nth(0)
		m.sent = append(m.sent, send{st, i})
	}
}

// onCheckpointed checks that all pages are durable everywhere, and records.
func (m *mapShell) onCheckpointed(lists []stripe.Seal) {
	if m.placed != len(m.pages) {
		m.bad("%d of %d pages are placed", m.placed, len(m.pages))
	}
	held := map[layout.SegmentID]stripe.Seal{}
	for _, l := range lists {
		held[l.Segment] = l
	}
	for _, st := range m.cut {
		for p := st.Header.Participants(); p != 0; p &= p - 1 {
			i, _ := p.Nth(0)
			r := m.cell.Server(st.Segment.Shards[i].Server).Shards[layout.ShardKey{Segment: st.Segment.ID, Shard: i}][st.Seq()]
			if r == nil || !r.Durable {
				m.bad("seq %d is not durable in shard %d", st.Seq(), i)
			}
		}
		want, ok := m.recorded[st.Segment.ID]
		if !ok {
			want = stripe.NewSeal(st.Segment.ID, st.Segment.Geometry)
		}
		want = want.Clone()
		want.Add(st.Header)
		m.recorded[st.Segment.ID] = want
	}
	for _, st := range m.cut {
		if !reflect.DeepEqual(held[st.Segment.ID], m.recorded[st.Segment.ID]) {
			m.bad("the list of segment %d has %d stripes, want %d", st.Segment.ID, held[st.Segment.ID].Count, m.recorded[st.Segment.ID].Count)
		}
	}
	m.cut = nil
	m.roots++
	m.active = false
	m.w.Recorded(m.now, nil)
}

func (m *mapShell) bad(format string, args ...any) {
	if m.broken == nil {
		m.broken = fmt.Errorf(format, args...)
	}
}

func TestMapWriterRefusesWhatIsOutOfTurn(t *testing.T) {
	w := write.NewMap(write.Config{Epoch: 1, Geometry: layout.Geometry{K: 2, M: 1}})
	if err := w.Place(0, []layout.BlockCount{1}); errs.KindOf(err) != errs.InvalidArgument {
		t.Fatalf("Place before Begin: %v", err)
	}
	if err := w.Begin(0); err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(0); errs.KindOf(err) != errs.Busy {
		t.Fatalf("Begin twice: %v", err)
	}
	if err := w.Place(0, []layout.BlockCount{0}); errs.KindOf(err) != errs.InvalidArgument {
		t.Fatalf("an empty page: %v", err)
	}
}
