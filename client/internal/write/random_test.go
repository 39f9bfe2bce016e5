package write_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strake/client/internal/write"
	"strake/client/internal/write/writetest"
	"strake/internal/errs"
	"strake/internal/layout"
	"strake/proto/stripe"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed alone, and print its history")
	seedsFlag = flag.Uint64("seeds", 3000, "random histories")
)

func TestRandomHistoriesKeepTheRules(t *testing.T) {
	first, last := uint64(1), *seedsFlag
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	cold := 0
	for seed := first; seed <= last; seed++ {
		if err := history(seed, *seedFlag != 0, &cold, t); err != nil {
			t.Fatalf("seed %d: %v\nagain: go test ./client/internal/write -run RandomHistories -seed=%d -v", seed, err, seed)
		}
	}
	if *seedFlag == 0 && cold < int(last)/4 {
		t.Errorf("%d relocations found a segment of their own in %d histories: the test tests little", cold, last)
	}
}

type world struct {
	r      *rand.Rand
	cell   *writetest.Cell
	d      *writetest.Driver
	nextID uint64
	lost   int
	cold   *int // relocations for which there was a segment
	t      *testing.T
}

// history runs one writer through a random one: trouble first, then all heals
// and the volume is released (or the writer was deposed).
func history(seed uint64, verbose bool, cold *int, t *testing.T) error {
	r := rand.New(rand.NewPCG(seed, 1))
	g := []layout.Geometry{{K: 4, M: 2}, {K: 2, M: 1}, {K: 1, M: 1}, {K: 3, M: 2}}[r.IntN(4)]
	w := &world{r: r, t: t, cold: cold, cell: writetest.NewCell(r, g.Shards()+r.IntN(4))}
	w.cell.Rows = []int{4, 32, 300}[r.IntN(3)]
	w.d = writetest.NewDriver(w.cell, write.Config{Epoch: 1, LastSeq: layout.Seq(r.IntN(3)), Geometry: g,
		MemoryCap: 64 * layout.BlockSize << r.IntN(4), InFlight: 1 + r.IntN(6)})
	if verbose {
		w.d.Log = func(s string) { t.Logf("%v %s", w.d.Now, s) }
	}
	trouble := r.IntN(30)
	w.cell.Faults = r.IntN(2) * r.IntN(60)
	for range 300 {
		w.event(trouble)
		if w.d.Broken != nil {
			return w.d.Broken
		}
	}
	return w.heal(verbose, t)
}

func (w *world) event(trouble int) {
	r, d := w.r, w.d
	s := w.cell.Servers[r.IntN(len(w.cell.Servers))]
	switch x := r.IntN(100); {
	case x < 20:
		w.submit()
	case x < 26:
		w.nextID++
		if r.IntN(2) == 0 {
			d.Flush(write.FlushID(w.nextID))
		} else {
			d.FlushAcked(write.FlushID(w.nextID))
		}
	case x < 40:
		d.Tick(30 * time.Millisecond)
	case r.IntN(100) >= trouble || x < 80:
		w.cell.Deliver()
	case x < 84:
		s.Crash(r)
	case x < 87:
		s.Down = !s.Down
	case x < 90:
		s.Hung = !s.Hung
	case x < 91 && w.lost < int(d.Want.M) && len(w.cell.Servers)-w.lost > int(d.Want.M)+1:
		w.lost++
		s.Lose()
	case x < 92:
		d.Do(func(c *write.Core) { c.ServerDown(d.Now, s.ID) })
	case x < 94:
		w.cell.Away = !w.cell.Away
	case x < 96:
		w.cell.Full = !w.cell.Full
	case x < 97:
		d.Overload(r.IntN(50))
	case x < 99:
		d.Budget(r.IntN(2) == 0)
	case r.IntN(20) == 0:
		w.cell.Epoch = 2
		s.Fence = 2
	}
}

func (w *world) submit() {
	r := w.r
	w.nextID++
	x := write.Write{ID: write.WriteID(w.nextID), Durable: r.IntN(4) == 0, Relocation: r.IntN(10) == 0}
	if x.Relocation && r.IntN(4) > 0 { // as a cleaner does: not before there is a segment for it
		ready := false
		w.d.Do(func(c *write.Core) { _, ready, _ = c.RelocationReady(w.d.Now, 40) })
		if x.Relocation = ready; ready {
			*w.cold++
		}
	} else if r.IntN(40) == 0 {
		w.d.Do(func(c *write.Core) { c.CloseCold(w.d.Now) })
	}
	for range 1 + r.IntN(3) {
		x.Ranges = append(x.Ranges, stripe.Range{Start: layout.BlockNumber(r.IntN(100)), Count: uint32(1 + r.IntN(12)), Kind: stripe.RangeKind(1 + min(r.IntN(8), 2))})
	}
	full, ended := w.d.Core.Full(), w.d.Ended != nil
	if err := w.d.Submit(x); !ended && full != (errs.KindOf(err) == errs.Overloaded) {
		w.t.Errorf("full: %v, Submit says %v", full, err)
	}
}

func (w *world) heal(verbose bool, t *testing.T) error {
	d := w.d
	for _, s := range w.cell.Servers {
		s.Down, s.Hung = false, false
	}
	w.cell.Away, w.cell.Full = false, false
	d.Overload(0)
	w.cell.Faults = 0
	d.Budget(true)
	d.Do(func(c *write.Core) { c.Release(d.Now) })
	for range 20000 {
		if d.Broken != nil {
			return d.Broken
		}
		if d.Ended != nil {
			break
		}
		if !w.cell.Deliver() || w.r.IntN(10) == 0 {
			if _, ok := d.Core.NextTick(); !ok && d.Ended == nil && w.cell.Waiting() == 0 {
				return fmt.Errorf("nothing is under way and nothing is due")
			}
			d.Tick(3 * time.Second)
		}
	}
	if d.Ended == nil {
		return fmt.Errorf("the release never ends: last %d, acked %d, flushed %d", d.Core.LastSeq(), d.Core.Acked(), d.Core.FlushedSeq())
	}
	if err := d.Settled(); err != nil {
		return err
	}
	return nil
}
