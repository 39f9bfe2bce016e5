package inprocess

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"strake/client"
)

// chain is a clone of a clone of a clone.
type chain struct {
	client.Config
	counters func() client.TransportCounters
	cell     *client.Cell
}

const (
	chainBase = 16 * mib
	chainPart = 64 << 10 // that each clone writes of its own
	deepest   = 64
)

// newChain counts what its client asks data servers for.
func newChain(c *Cell) *chain {
	h := &chain{}
	h.Config, h.counters = client.Counted(c.o.Client)
	c.o.Client = h.Config
	h.cell = c.Dial()
	return h
}

// grow writes a volume and then as many parts over it as `parts`, each by a writer of its
// own, hence in a segment of its own: the first `flat` of them in the volume itself, each
// other one in a clone of what was before. It gives the last clone's name and what it
// holds.
func (h *chain) grow(t testing.TB, base string, parts, flat int) (name string, want []byte) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	_, err := h.cell.CreateVolume(t.Context(), base, client.VolumeOptions{Size: chainBase, K: 4, M: 2})
	check(err)
	v, err := h.cell.Open(t.Context(), base, writing)
	check(err)
	fill(t, v, chainBase)
	want = make([]byte, 0, chainBase)
	for at := int64(0); at < chainBase; at += 4 * mib {
		want = append(want, pattern(uint64(at), 4*mib)...)
	}
	name = base
	for i := range parts {
		check(v.CloseContext(t.Context()))
		if i >= flat {
			_, err := h.cell.CreateSnapshots(t.Context(), name+"@s")
			check(err)
			next := fmt.Sprintf("%s-%d", base, i)
			_, err = h.cell.CloneVolume(t.Context(), name+"@s", next)
			check(err)
			name = next
		}
		v, err = h.cell.Open(t.Context(), name, writing)
		check(err)
		p, at := pattern(uint64(i+9), chainPart), int64(i)*chainBase/deepest
		copy(want[at:], p)
		_, err = v.WriteAt(p, at)
		check(err)
	}
	check(v.CloseContext(t.Context()))
	return name, want
}

// opened opens a volume for reading, and gives how many calls that took.
func (h *chain) opened(t testing.TB, name string) (v *client.Volume, calls uint64) {
	t.Helper()
	before := h.counters().Calls
	v, err := h.cell.Open(t.Context(), name, client.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v, h.counters().Calls - before
}

// scan reads a volume in pieces, all of it, and gives how many calls that took. It goes
// through in steps of seven pieces, so that nothing is read ahead.
func (h *chain) scan(t testing.TB, v *client.Volume, want []byte, piece int) uint64 {
	t.Helper()
	p, before := make([]byte, piece), h.counters().Calls
	for i := range len(want) / piece {
		at := i * 7 % (len(want) / piece) * piece // the number of pieces is a power of two
		if _, err := v.ReadAt(p, int64(at)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p, want[at:at+piece]) {
			t.Fatalf("at %d: it holds something else", at)
		}
	}
	return h.counters().Calls - before
}

// TestA64thCloneIsReadAsAVolumeOfItsOwn counts the calls that an open, single blocks and
// long reads take of a chain of clones, and of a volume that was written alike.
func TestA64thCloneIsReadAsAVolumeOfItsOwn(t *testing.T) {
	c := Start(t, Options{Direct: true, Client: unattended})
	h := newChain(c)
	flat, want := h.grow(t, "flat", deepest, deepest)
	deep, same := h.grow(t, "deep", deepest, 0)
	if !slices.Equal(want, same) {
		t.Fatal("the volumes differ")
	}
	a, openFlat := h.opened(t, flat)
	b, openDeep := h.opened(t, deep)
	for _, piece := range []int{block, mib} {
		h.scan(t, a, want, piece) // the map's pages are loaded
		h.scan(t, b, want, piece)
		n, m := h.scan(t, a, want, piece), h.scan(t, b, want, piece)
		t.Logf("reads of %d bytes: %d calls, %d of a chain", piece, n, m)
		if float64(m) > 1.1*float64(n) { // late reads are hedged
			t.Errorf("reads of %d bytes take %d calls, of a chain %d", piece, n, m)
		}
	}
	t.Logf("an open: %d calls, %d of a chain", openFlat, openDeep)
	if openDeep > openFlat+4 {
		t.Errorf("an open takes %d calls, of a chain %d", openFlat, openDeep)
	}
	closed(t, a)
	closed(t, b)
}

// BenchmarkChain opens and reads a volume, the clone of one, and one that is 64 deep,
// all with the same content and written alike; a client closes as it does by default.
func BenchmarkChain(b *testing.B) {
	c := Start(b, Options{Direct: true, Client: client.Config{Tuning: client.Tuning{CleanEvery: -1}}})
	h := newChain(c)
	for _, depth := range []int{0, 1, deepest} {
		name, want := h.grow(b, fmt.Sprintf("v%d", depth), deepest, deepest-depth)
		v, _ := h.opened(b, name)
		b.Run(fmt.Sprintf("depth=%d/open", depth), func(b *testing.B) {
			before := h.counters().Calls
			for range b.N {
				again, _ := h.opened(b, name)
				must(b, again.Close())
			}
			b.ReportMetric(float64(h.counters().Calls-before)/float64(b.N), "calls/op")
		})
		h.scan(b, v, want, mib)
		b.Run(fmt.Sprintf("depth=%d/seqread", depth), func(b *testing.B) { h.read(b, v, mib, false) })
		b.Run(fmt.Sprintf("depth=%d/randread", depth), func(b *testing.B) { h.read(b, v, block, true) })
		must(b, v.Close())
	}
}

func (h *chain) read(b *testing.B, v *client.Volume, piece int64, random bool) {
	r, p := rand.New(rand.NewPCG(1, 1)), make([]byte, piece)
	before := h.counters().Calls
	b.SetBytes(piece)
	for i := range int64(b.N) {
		at := i * piece % chainBase
		if random {
			at = r.Int64N(chainBase/piece) * piece
		}
		if _, err := v.ReadAt(p, at); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(h.counters().Calls-before)/float64(b.N), "calls/op")
}
