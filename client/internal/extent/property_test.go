package extent

import (
	"flag"
	"fmt"
	"testing"

	"strake/internal/layout"
	"strake/proto/stripe"
)

var seed = flag.Int64("seed", 0, "replay one seed of the property test")

// TestMapEqualsModelThroughAnyHistory runs random histories of writes, discards,
// moves, checkpoints, aborts, crashes, evictions and settling against the model.
func TestMapEqualsModelThroughAnyHistory(t *testing.T) {
	if *seed != 0 {
		history(t, *seed)
		return
	}
	for s := int64(1); s <= 24; s++ {
		if !t.Run(fmt.Sprint(s), func(t *testing.T) { history(t, s) }) {
			t.Fatalf("replay with: go test ./client/internal/extent -run AnyHistory -seed %d", s)
		}
	}
}

func history(t *testing.T, seed int64) {
	w := newWorld(t, seed, 200+uint64(seed%7)*700)
	w.m.limits = [][2]int{{200, 300}, {400, 400}, {leafLimit, innerLimit}}[seed%3]
	var c *Checkpoint
	begun := false
	for step := range 150 {
		switch n := w.rnd.Intn(100); {
		case n < 60:
			w.randomWrite()
		case n < 66:
			if low := max(w.rooted, w.busyUpTo(c, begun)) + 1; low <= w.m.Applied() {
				w.move(low + layout.Seq(w.rnd.Intn(int(w.m.Applied()-low+1))))
			}
		case n < 70 && c == nil:
			c, begun = w.freeze(), false
		case n < 85 && c != nil:
			if w.step(c, 1+w.rnd.Intn(20000)); c.Done() {
				w.commit(c)
				c = nil
			}
			begun = true
		case n < 87 && c != nil:
			w.m.Aborted(c)
			c = nil
		case n < 88:
			cut := w.rooted + layout.Seq(w.rnd.Intn(int(w.m.Applied()-w.rooted)+1))
			w.crash(cut)
			c = nil
		case n < 91:
			w.m.Evict(int64(w.rnd.Intn(1 << 16)))
		case n < 93:
			w.load(w.m.Settle(1 + w.rnd.Intn(5)))
		case n < 94:
			w.vacate()
		default:
			start := uint64(w.rnd.Intn(int(w.size)))
			if err := w.verify(layout.Range{Start: layout.BlockNumber(start), Count: layout.BlockCount(1 + w.rnd.Intn(300))}); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
		}
		if step%20 == 0 {
			w.verifyAll(seed, step)
		}
	}
	w.verifyAll(seed, 150)
}

func (w *world) freeze() *Checkpoint {
	c, err := w.m.Freeze()
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) busyUpTo(c *Checkpoint, begun bool) layout.Seq {
	if c != nil && begun {
		return c.Covers()
	}
	return 0
}

func (w *world) verifyAll(seed int64, step int) {
	w.t.Helper()
	if err := w.m.Check(); err != nil {
		w.t.Fatalf("seed %d step %d: %v", seed, step, err)
	}
	if err := w.verify(layout.Range{Count: layout.BlockCount(w.size + 1000)}); err != nil {
		w.t.Fatalf("seed %d step %d: %v", seed, step, err)
	}
	if w.rnd.Intn(2) == 0 {
		if err := w.verifyLive(); err != nil {
			w.t.Fatalf("seed %d step %d: %v", seed, step, err)
		}
	}
}

func (w *world) randomWrite() {
	var ranges []stripe.Range
	for range 1 + w.rnd.Intn(30) {
		r := stripe.Range{Start: layout.BlockNumber(w.rnd.Intn(int(w.size))), Count: 1, Kind: stripe.Write}
		switch n := w.rnd.Intn(40); {
		case n == 0:
			r.Count = uint32(1 + w.rnd.Intn(500))
		case n == 1:
			r.Kind, r.Count = stripe.Discard+stripe.RangeKind(w.rnd.Intn(2)), uint32(1+w.rnd.Intn(int(w.size)/4))
		case n < 10:
			r.Count = uint32(1 + w.rnd.Intn(8))
		}
		ranges = append(ranges, r)
	}
	if w.rnd.Intn(30) == 0 {
		ranges = []stripe.Range{{Count: uint32(w.size + 500), Kind: stripe.Discard}}
	}
	w.write(ranges...)
}

// vacate empties a random map segment with the next checkpoint.
func (w *world) vacate() {
	list, need := w.m.MapSegments()
	w.load(need)
	if len(list) > 0 {
		w.m.Vacate(list[w.rnd.Intn(len(list))].Segment)
	}
}
