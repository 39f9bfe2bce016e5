package inprocess

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"strake/client"
)

// unattended is a client whose volumes are cleaned when a test says so.
var unattended = client.Config{Tuning: client.Tuning{CleanEvery: -1, MapHeaders: 1 << 40, CloseHeaders: 1}}

// storedOf is what a volume's sealed segments take.
func storedOf(t *testing.T, cell *client.Cell) uint64 {
	t.Helper()
	info, err := cell.Volume(t.Context(), "v")
	if err != nil {
		t.Fatal(err)
	}
	return info.StoredBytes
}

// TestWhatWasOverwrittenHereAndThereComesBack overwrites blocks of a volume at random,
// so that no segment is without a live block, and cleans.
func TestWhatWasOverwrittenHereAndThereComesBack(t *testing.T) {
	const size = 48 * mib
	c := Start(t, Options{Client: unattended})
	cell, v := volume(t, c, size, 4, 2)
	model := pattern(1, size)
	write(t, v, model, 0)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 3000 {
		at := r.Int64N(size/block) * block
		p := pattern(uint64(i+2), block)
		copy(model[at:], p)
		write(t, v, p, at)
	}
	flush(t, v)
	report, err := v.Clean(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %+v", report, v.Stats())
	holds(t, v, model, 0)
	closed(t, v)
	c.Eventually("space comes back", func() error {
		if n := storedOf(t, cell); n > size*3/2*6/5 {
			return fmt.Errorf("%d MiB are stored for %d MiB of data", n/mib, size/mib)
		}
		return nil
	})
	v = open(t, cell, "v", writing)
	holds(t, v, model, 0)
	closed(t, v)
}

// A writer that opens a volume and overwrites all of it counts what it overwrote as
// garbage, though it had none of the map's pages when it wrote.
func TestARootCountsWhatWasOverwrittenUnseen(t *testing.T) {
	const size = 48 * mib
	c := Start(t, Options{Client: unattended})
	cell, v := volume(t, c, size, 4, 2)
	var live [2]uint64
	for round := range live {
		if round > 0 {
			v = open(t, cell, "v", writing)
		}
		write(t, v, pattern(uint64(round), size), 0)
		closed(t, v)
		info, err := cell.Volume(t.Context(), "v")
		if err != nil {
			t.Fatal(err)
		}
		live[round] = info.LiveBytes
	}
	if live[0] != size || live[1] != size {
		t.Errorf("of a volume of %d bytes that was written twice %d bytes live by its roots", size, live)
	}
}

// attended is a client whose writers clean often.
var attended = client.Config{Tuning: client.Tuning{CleanEvery: 50 * time.Millisecond, MapHeaders: 200, CloseHeaders: 1}}

// world is a volume and its snapshots beside what they must hold.
type world struct {
	t      *testing.T
	c      *Cell
	cell   *client.Cell
	v      *client.Volume
	r      *rand.Rand
	model  []byte
	frozen map[string][]byte
	made   int
	moved  uint64 // bytes relocated
}

// count takes in what a handle that ends has relocated.
func (w *world) count() { w.moved += w.v.Stats().Relocated }

// step does one random thing.
func (w *world) step() {
	size := int64(len(w.model))
	at := w.r.Int64N(size/block) * block
	n := min(size-at, (1+w.r.Int64N(8))*block)
	if w.r.IntN(10) == 0 {
		n = min(size-at, 2*mib)
	}
	switch k := w.r.IntN(100); {
	case k < 70:
		p := pattern(w.r.Uint64(), int(n))
		copy(w.model[at:], p)
		if w.r.IntN(2) == 0 { // what is not cut yet must not be replaced by what is relocated
			w.v.WriteAsync(p, at)
			return
		}
		write(w.t, w.v, p, at)
	case k < 78:
		clear(w.model[at : at+n])
		if err := w.v.Discard(w.t.Context(), at, n); err != nil {
			w.t.Fatal(err)
		}
	case k < 84:
		flush(w.t, w.v)
	case k < 87 && len(w.frozen) < 4:
		w.made++
		name := fmt.Sprintf("v@s%d", w.made)
		freeze(w.t, w.cell, name)
		w.frozen[name] = slices.Clone(w.model)
	case k < 90 && len(w.frozen) > 0:
		name := w.any()
		unfreeze(w.t, w.cell, name)
		delete(w.frozen, name)
	case k < 92:
		if _, err := w.v.Clean(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	case k < 93:
		w.reopen()
	case k < 94 && len(w.frozen) > 0:
		w.rollback(w.any())
	}
}

func (w *world) any() string {
	names := slices.Sorted(maps.Keys(w.frozen))
	return names[w.r.IntN(len(names))]
}

// reopen closes the volume, or lets its writer crash after a flush.
func (w *world) reopen() {
	w.count()
	if w.r.IntN(2) == 0 {
		closed(w.t, w.v)
	} else {
		flush(w.t, w.v)
		w.cell.Abandon()
		w.cell = w.c.Dial()
	}
	w.v = open(w.t, w.cell, "v", forced)
}

func (w *world) rollback(name string) {
	w.count()
	closed(w.t, w.v)
	_, kept, err := w.cell.RollbackVolume(w.t.Context(), name, false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.frozen[kept.Name] = w.model
	w.model = slices.Clone(w.frozen[name])
	w.v = open(w.t, w.cell, "v", writing)
}

func (w *world) check() {
	w.t.Helper()
	holds(w.t, w.v, w.model, 0)
	for name, want := range w.frozen {
		frozenAs(w.t, w.cell, name, want, 0)
	}
}

// TestCleaningChangesNothingAndLeavesNoGarbage writes, discards, freezes, removes, rolls
// back, reopens, crashes and cleans at random, with a writer that cleans by itself
// meanwhile, against an array of bytes; at the end nothing but what is live is stored.
func TestCleaningChangesNothingAndLeavesNoGarbage(t *testing.T) {
	seeds, steps := 4, 600
	if testing.Short() {
		seeds, steps = 1, 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			const size = 24 * mib
			c := Start(t, Options{Chunkds: 4, Client: attended})
			cell, v := volume(t, c, size, 2, 1)
			w := &world{t: t, c: c, cell: cell, v: v, r: rand.New(rand.NewPCG(uint64(seed), 7)), model: make([]byte, size), frozen: map[string][]byte{}}
			for i := range steps {
				w.step()
				if i%100 == 99 {
					w.check()
				}
			}
			w.check()
			w.settle()
		})
	}
}

// settle removes all snapshots, cleans, and looks at what is left.
func (w *world) settle() {
	for name := range w.frozen {
		unfreeze(w.t, w.cell, name)
	}
	clear(w.frozen)
	if _, err := w.cell.FlattenVolume(w.t.Context(), "v", false); err != nil { // it may stand on what was rolled back
		w.t.Fatal(err)
	}
	report, err := w.v.Clean(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if report.Blocked > 0 || report.Inherits > 0 || report.Garbage > 4*mib {
		w.t.Errorf("left %+v", report)
	}
	w.check()
	if w.count(); w.moved < 4*mib {
		w.t.Errorf("%d bytes were relocated: the test tests little", w.moved)
	}
	closed(w.t, w.v)
	w.c.Eventually("only what is live is stored", func() error {
		info, err := w.cell.Volume(w.t.Context(), "v")
		if want := uint64(len(w.model))*3/2 + 6*mib; err != nil || info.StoredBytes > want || info.Origin != "" {
			return fmt.Errorf("%d MiB are stored for at most %d, %+v %v", info.StoredBytes/mib, want/mib, info, err)
		}
		s, err := w.cell.Status(w.t.Context())
		if err == nil && s.UsedBytes > uint64(len(w.model))*3/2+64*mib {
			err = fmt.Errorf("%d MiB are used", s.UsedBytes/mib)
		}
		return err
	})
}

// TestACleanerAndAWriterOfTheSameBlocksAgree has many writes of a few blocks on their
// way while the segments in which these lie are cleaned again and again.
func TestACleanerAndAWriterOfTheSameBlocksAgree(t *testing.T) {
	const size = 8 * mib
	c := Start(t, Options{Chunkds: 3, Client: unattended})
	cell, v := volume(t, c, size, 2, 1)
	model, relocated := pattern(1, size), uint64(0)
	for round := range uint64(12) {
		write(t, v, model, 0) // all of it lies in order, in segments that are sealed then
		closed(t, v)
		v = open(t, cell, "v", writing)
		stop, done := make(chan struct{}), make(chan error)
		go func() {
			r := rand.New(rand.NewPCG(round, 1))
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					done <- v.Flush(t.Context())
					return
				default:
				}
				at := r.Int64N(size/block) * block
				p := pattern(round<<32|i, block)
				copy(model[at:], p)
				if c := v.WriteAsync(p, at); i%64 == 63 {
					if err := c.Wait(t.Context()); err != nil {
						done <- err
						return
					}
				}
			}
		}()
		var err error
		for range 3 {
			if _, e := v.Clean(t.Context()); err == nil {
				err = e
			}
		}
		close(stop)
		if e := <-done; err != nil || e != nil {
			t.Fatal(err, e)
		}
		holds(t, v, model, 0)
		relocated += v.Stats().Relocated
	}
	if relocated == 0 {
		t.Errorf("nothing was relocated: %+v", v.Stats())
	}
	closed(t, v)
	frozenAs(t, cell, "v", model, 0)
}

// TestAJanitorCleansAVolumeWithoutAWriterAndGivesWayAtOnce leaves garbage behind: a
// janitor cleans it. Whoever opens the volume meanwhile, removes it or rolls it back,
// does not wait for the janitor's end.
func TestAJanitorCleansAVolumeWithoutAWriterAndGivesWayAtOnce(t *testing.T) {
	const size = 32 * mib
	timing := quick()
	timing.CleanAfter = 200 * time.Millisecond
	c := Start(t, Options{Client: unattended, Timing: timing})
	cell, v := volume(t, c, size, 4, 2)
	model := pattern(1, size)
	write(t, v, model, 0)
	for i := range int64(size / block / 2) {
		copy(model[2*i*block:], pattern(uint64(i+2), block))
		v.WriteAsync(model[2*i*block:][:block], 2*i*block)
	}
	flush(t, v)
	closed(t, v)
	before := storedOf(t, cell)
	reader := open(t, cell, "v", client.OpenOptions{}) // its segments go away under it
	c.Eventually("a janitor cleans it", func() error {
		if n := storedOf(t, cell); n > size*3/2*6/5 {
			return fmt.Errorf("%d MiB are stored, %d were, for %d MiB of data", n/mib, before/mib, size/mib)
		}
		return nil
	})
	holds(t, reader, model, 0)
	for i := range int64(6) {
		v = open(t, cell, "v", writing) // without force, whoever has it
		holds(t, v, model, 0)
		for j := range int64(size / block / 4) {
			copy(model[(4*j+i%4)*block:], pattern(uint64(i*100000+j), block))
			v.WriteAsync(model[(4*j+i%4)*block:][:block], (4*j+i%4)*block)
		}
		closed(t, v)
		if i%2 == 0 { // a janitor is at it
			c.Eventually("a janitor has it", func() error {
				if info, err := cell.Volume(t.Context(), "v"); err != nil || info.Holder == "" && info.GarbageBytes > size/4 {
					return fmt.Errorf("%+v %v", info, err)
				}
				return nil
			})
		}
	}
	frozenAs(t, cell, "v", model, 0)
	if err := cell.RemoveVolume(t.Context(), "v", true); err != nil {
		t.Fatal(err)
	}
	allGone(t, c, cell)
}

// TestACellThatIsFullIsCleanedFromItsReserve fills a cell, then overwrites what it can
// until it is refused: garbage alone stands between it and room.
func TestACellThatIsFullIsCleanedFromItsReserve(t *testing.T) {
	long(t)
	const disk = 256 * mib
	c := Start(t, Options{Chunkds: 3, DiskBytes: disk, Client: unattended})
	cell, v := volume(t, c, 512*mib, 2, 1)
	chunk := pattern(1, mib)
	var err error
	written := int64(0)
	for ; err == nil && written < 512; written++ { // two of three chunks are overwritten at once
		if _, err = v.WriteAt(chunk, written/3*mib); err == nil && written%3 == 2 {
			err = v.Flush(t.Context())
		}
	}
	fails(t, "a full cell", err, client.ErrNoSpace)
	report, err := v.Clean(t.Context())
	if err != nil {
		t.Fatalf("cleaning a full cell: %v, after %+v", err, report)
	}
	c.Eventually("there is room again", func() error {
		_, err := v.WriteAt(chunk, 0)
		return err
	})
	for i := range (written - 3) / 3 {
		holds(t, v, chunk, i*mib)
	}
	closed(t, v)
	_ = cell
}

// TestAFlattenedCloneNeedsItsParentNoMore flattens one while it is written and one
// that nobody writes, and removes the parent.
func TestAFlattenedCloneNeedsItsParentNoMore(t *testing.T) {
	timing := quick()
	timing.CleanAfter = 100 * time.Millisecond
	c := Start(t, Options{Client: client.Config{Tuning: client.Tuning{CleanEvery: 100 * time.Millisecond, CloseHeaders: 1}}, Timing: timing})
	cell, v := volume(t, c, 32*mib, 4, 2)
	base, mine := pattern(1, 12*mib), pattern(2, 3*mib)
	write(t, v, base, 0)
	freeze(t, cell, "v@a")
	closed(t, v)
	for _, name := range []string{"idle", "open"} {
		if _, err := cell.CloneVolume(t.Context(), "v@a", name); err != nil {
			t.Fatal(err)
		}
	}
	w := open(t, cell, "open", writing)
	write(t, w, mine, mib)
	flush(t, w)
	want := slices.Clone(base)
	copy(want[mib:], mine)
	for _, name := range []string{"idle", "open"} {
		info, err := cell.FlattenVolume(t.Context(), name, false)
		if err != nil || !info.Flattening || info.Origin != "v@a" {
			t.Fatalf("%+v %v", info, err)
		}
		c.Eventually(name+" is flat", func() error {
			if info, err = cell.Volume(t.Context(), name); err != nil || info.Flattening || info.Origin != "" || info.Inherited != 0 {
				return fmt.Errorf("%+v %v", info, err)
			}
			return nil
		})
	}
	holds(t, w, want, 0)
	closed(t, w)
	if err := cell.RemoveVolume(t.Context(), "v", true); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the parent is gone for good", func() error {
		s, err := cell.Status(t.Context())
		a, _ := cell.Volume(t.Context(), "idle")
		b, _ := cell.Volume(t.Context(), "open")
		if err != nil || s.Segments > a.Segments+b.Segments {
			return fmt.Errorf("%d segments, %d are the clones' %v", s.Segments, a.Segments+b.Segments, err)
		}
		return nil
	})
	frozenAs(t, cell, "idle", base, 0)
	frozenAs(t, cell, "open", want, 0)
	again, err := cell.FlattenVolume(t.Context(), "idle", false)
	if err != nil || again.Flattening {
		t.Errorf("%+v %v", again, err)
	}
}

// TestWhatARollbackLeftBehindComesBackByItself rolls a volume back, overwrites every
// second block of what it began as, and removes all snapshots: nobody asks for anything
// more. A volume that still has the snapshot it began as is left alone.
func TestWhatARollbackLeftBehindComesBackByItself(t *testing.T) {
	const size = 16 * mib
	timing := quick()
	timing.CleanAfter = 100 * time.Millisecond
	c := Start(t, Options{Client: client.Config{Tuning: client.Tuning{CloseHeaders: 1}}, Timing: timing})
	cell, v := volume(t, c, size, 4, 2)
	model := pattern(1, size)
	write(t, v, model, 0)
	freeze(t, cell, "v@a")
	write(t, v, pattern(2, size), 0)
	closed(t, v)
	_, kept, err := cell.RollbackVolume(t.Context(), "v@a", false)
	if err != nil {
		t.Fatal(err)
	}
	v = open(t, cell, "v", writing)
	for i := range int64(size / block / 2) {
		copy(model[2*i*block:], pattern(uint64(i+3), block))
		v.WriteAsync(model[2*i*block:][:block], 2*i*block)
	}
	closed(t, v)
	unfreeze(t, cell, kept.Name)
	c.Eventually("what the volume was is given back", func() error {
		if n := storedOf(t, cell); n > 2*size*3/2*6/5 {
			return fmt.Errorf("%d MiB are stored", n/mib)
		}
		return nil
	})
	if info, err := cell.Volume(t.Context(), "v"); err != nil || info.Flattening || info.Origin != "v@a" {
		t.Errorf("it stands on a snapshot that people want: %+v %v", info, err)
	}
	unfreeze(t, cell, "v@a")
	c.Eventually("nothing but what is live is stored", func() error {
		info, err := cell.Volume(t.Context(), "v")
		if err != nil || info.Origin != "" || info.StoredBytes > size*3/2*6/5 {
			return fmt.Errorf("%d MiB are stored, %+v %v", info.StoredBytes/mib, info, err)
		}
		return nil
	})
	frozenAs(t, cell, "v", model, 0)
}
