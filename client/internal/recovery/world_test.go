package recovery_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"strake/client/internal/recovery"
	"strake/client/internal/write"
	"strake/client/internal/write/writetest"
	"strake/internal/layout"
	"strake/proto/stripe"
)

// decider is recovery.Decide, or the reference with a rule off.
type decider func(recovery.Input) (recovery.Plan, error)

// world is the model's environment: one volume, a writer W1 that may live on
// for ever, recoverers that come and go, crashes that lose what is not synced,
// and up to m servers lost for ever, rotten or silent.
type world struct {
	r       *rand.Rand
	cell    *writetest.Cell
	g       layout.Geometry
	decide  decider
	writers []*writetest.Driver // of the epochs that wrote: W1, then each after a recovery
	rec     *recoverer
	cuts    []recovery.Cut
	floor   layout.Seq   // the cut of the last closed epoch: what it kept must stay
	ended   layout.Epoch // the last epoch that was closed
	root    root
	bad     map[layout.ServerID]bool
	rotten  map[layout.ServerID]bool
	crashes int
	closed  int
	ids     uint64
	log     func(string, ...any)
	done    []*recoverer // that closed an epoch
}

// root is the newest map root: it covers a flushed seq and names each stripe's place.
type root struct {
	covers layout.Seq
	places map[layout.Seq]layout.SegmentID
}

func newWorld(seed uint64, decide decider) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	g := []layout.Geometry{{K: 2, M: 1}, {K: 2, M: 1}, {K: 1, M: 1}, {K: 3, M: 2}, {K: 2, M: 2}}[r.IntN(5)]
	w := &world{r: r, g: g, decide: decide, bad: map[layout.ServerID]bool{}, rotten: map[layout.ServerID]bool{}, log: func(string, ...any) {}}
	w.cell = writetest.NewCell(r, g.Shards()+r.IntN(2))
	w.cell.Rows = 12
	w.write(1, 0)
	return w
}

// write starts the writer of an epoch.
func (w *world) write(epoch layout.Epoch, last layout.Seq) {
	d := writetest.NewDriver(w.cell, write.Config{Epoch: epoch, LastSeq: last, Geometry: w.g, MemoryCap: 64 * layout.BlockSize, InFlight: 4})
	d.Log = func(s string) { w.log("W%d: %s", epoch, s) }
	w.writers = append(w.writers, d)
}

// run makes random steps until the log has been recovered, or n are done.
func (w *world) run(n int) error {
	for range n {
		w.step()
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) step() {
	d := w.writers[w.r.IntN(len(w.writers))]
	s := w.cell.Servers[w.r.IntN(len(w.cell.Servers))]
	switch x := w.r.IntN(100); {
	case x < 14 && d.Core.LastSeq() < w.floor+8:
		w.submit(d)
	case x < 20:
		w.ids++
		d.Flush(write.FlushID(w.ids))
	case x < 25:
		d.Tick(40 * time.Millisecond)
	case x < 66:
		w.cell.Deliver()
	case x < 69 && w.crashes < 3 && !s.Lost:
		w.crashes++
		w.log("server %d crashes", s.ID)
		s.Crash(w.r)
	case x < 71:
		w.lose(s)
	case x < 73:
		s.Hung = !s.Hung
	case x < 74:
		w.cell.Away = !w.cell.Away
	case x < 76:
		w.recordRoot(w.writers[len(w.writers)-1])
	case x < 78:
		w.log("W%d gives up on server %d", d.Epoch, s.ID)
		d.Do(func(c *write.Core) { c.ServerDown(d.Now, s.ID) })
	case x < 80 && w.cell.Epoch < 4 && d.Core.LastSeq() > 0:
		w.takeLease()
	case w.rec != nil:
		w.rec.step()
	default:
		w.cell.Deliver()
	}
}

// recordRoot has a writer write its map, unless it was deposed.
func (w *world) recordRoot(d *writetest.Driver) {
	if w.cell.Away || d.Epoch != w.cell.Epoch || d.Flushed <= max(w.root.covers, w.floor) {
		return
	}
	if w.root.places == nil {
		w.root.places = map[layout.Seq]layout.SegmentID{}
	}
	for seq := max(d.First, w.root.covers+1); seq <= d.Flushed; seq++ {
		w.root.places[seq] = d.Stripes[seq-d.First].Header.Segment
	}
	w.root.covers = d.Flushed
	w.log("W%d records a root that covers %d", d.Epoch, d.Flushed)
}

func (w *world) submit(d *writetest.Driver) {
	w.ids++
	x := write.Write{ID: write.WriteID(w.ids)}
	kind := stripe.Write
	if w.r.IntN(5) == 0 {
		kind = stripe.Discard
	}
	x.Ranges = []stripe.Range{{Start: layout.BlockNumber(w.ids), Count: uint32(1 + w.r.IntN(2*int(w.g.K))), Kind: kind}}
	_ = d.Submit(x)
}

// lose takes a server away for ever, or lets one record of it rot; at most m
// servers see either.
func (w *world) lose(s *writetest.Server) {
	if s.Lost || len(w.bad) == int(w.g.M) && !w.bad[s.ID] {
		return
	}
	w.bad[s.ID] = true
	if w.r.IntN(2) == 0 {
		w.log("server %d is lost for ever", s.ID)
		s.Lose()
		return
	}
	w.log("server %d rots", s.ID)
	w.rotten[s.ID] = true
}

// check holds the promises against what is there.
func (w *world) check() error {
	if w.rec != nil && w.rec.fault != nil {
		return w.rec.fault
	}
	for _, r := range w.done {
		if r.fault != nil {
			return r.fault
		}
	}
	for _, d := range w.writers {
		if d.Broken != nil {
			return fmt.Errorf("W%d: %w", d.Epoch, d.Broken)
		}
		if d.Epoch < w.ended && d.Flushed > w.floor {
			return fmt.Errorf("P1/P4: seq %d of epoch %d was flushed, the log ends at %d", d.Flushed, d.Epoch, w.floor)
		}
	}
	return nil
}

// contents checks the log that Raft's seals give: a prefix of what was written,
// each stripe readable.
func (w *world) contents() error {
	var headers []*stripe.Header
	for _, id := range w.cell.Order {
		s := w.cell.Segments[id]
		if s.Seal == nil {
			continue
		}
		for _, h := range w.headersOf(s) {
			if s.Seal.Count > 0 && h.Seq <= s.Seal.Last {
				headers = append(headers, h)
			}
		}
	}
	log := recovery.Replay(headers, w.cuts)
	for i, h := range log {
		if h.Seq > w.floor {
			break
		}
		if h.Seq != layout.Seq(i+1) {
			return fmt.Errorf("P2: the log has seq %d at place %d of %d", h.Seq, i+1, w.floor)
		}
		if !slices.Equal(h.Ranges, w.content(h.Seq)) {
			return fmt.Errorf("P2: seq %d has another content", h.Seq)
		}
		if !w.cell.Readable(w.cell.Segments[h.Segment], h) {
			return fmt.Errorf("P1: seq %d in segment %d can't be decoded, servers %v are bad", h.Seq, h.Segment, w.bad)
		}
	}
	if layout.Seq(len(log)) < w.floor {
		return fmt.Errorf("P2: the log has %d stripes, the cut is %d", len(log), w.floor)
	}
	return w.mapped()
}

// mapped checks that what the root names is sealed where it names it.
func (w *world) mapped() error {
	for seq, id := range w.root.places {
		s := w.cell.Segments[id]
		held := false
		for _, h := range w.headersOf(s) {
			held = held || h.Seq == seq && s.Seal != nil && s.Seal.Count > 0 && seq <= s.Seal.Last && w.cell.Readable(s, h)
		}
		if !held {
			return fmt.Errorf("P1: the map names segment %d for seq %d, which its seal does not hold", id, seq)
		}
	}
	return nil
}

// content is what the writer of a seq put there: the latest epoch that cut it
// before it was recovered.
func (w *world) content(seq layout.Seq) []stripe.Range {
	for i := len(w.writers) - 1; i >= 0; i-- {
		if d := w.writers[i]; seq >= d.First && int(seq-d.First) < len(d.Stripes) {
			return d.Stripes[seq-d.First].Header.Ranges
		}
	}
	return nil
}

func (w *world) headersOf(s *writetest.Segment) (out []*stripe.Header) {
	seen := map[layout.Seq]bool{}
	for i, sh := range s.Shards {
		for seq, r := range w.cell.Server(sh.Server).Shards[layout.ShardKey{Segment: s.ID, Shard: layout.ShardIndex(i)}] {
			if !seen[seq] {
				seen[seq] = true
				out = append(out, r.Header)
			}
		}
	}
	return out
}

// finalize compares each shard's own list with the seal: it may differ where the
// server is bad, and nowhere else, so that as many losses as before are left (R8).
func (w *world) finalize(s *writetest.Segment) error {
	differ, sound := 0, 0
	for i, sh := range s.Shards {
		own := w.cell.Server(sh.Server).Shards[layout.ShardKey{Segment: s.ID, Shard: layout.ShardIndex(i)}]
		n := uint32(0)
		for seq := range own {
			if s.Seal.Count > 0 && seq <= s.Seal.Last {
				n++
			}
		}
		if n != s.Seal.Shards[i].Count {
			if differ++; !w.bad[sh.Server] {
				sound++
			}
		}
	}
	if differ > int(w.g.M) || sound > 0 {
		return fmt.Errorf("P1: %d shards of segment %d (%v) differ from its seal of %d stripes up to seq %d", differ, s.ID, s.Geometry, s.Seal.Count, s.Seal.Last)
	}
	return nil
}
