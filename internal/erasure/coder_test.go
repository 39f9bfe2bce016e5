package erasure

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"strake/internal/errs"
	"strake/internal/layout"
)

func geometries() (all []layout.Geometry) {
	for k := 1; k <= layout.MaxData; k++ {
		for m := 1; m <= layout.MaxParity; m++ {
			all = append(all, layout.Geometry{K: uint8(k), M: uint8(m)})
		}
	}
	return all
}

func mustFor(t testing.TB, g layout.Geometry) *Coder {
	t.Helper()
	c, err := For(g)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sample makes the units of a stripe with the given data units, parity by the
// reference.
func sample(r *rand.Rand, table *[256][256]byte, matrix [][]byte, g layout.Geometry, data layout.Mask, length int) [][]byte {
	units := make([][]byte, g.Shards())
	for s := range units[:g.K] {
		if data.Has(layout.ShardIndex(s)) {
			units[s] = make([]byte, length)
			r.Read(units[s])
		}
	}
	referenceEncode(table, matrix, g, units, length)
	return units
}

func TestMatrixIsTheFrozenOne(t *testing.T) {
	for _, g := range geometries() {
		got, err := matrixOf(g)
		if err != nil {
			t.Fatal(err)
		}
		if want := referenceMatrix(g); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v: got %v, want %v", g, got, want)
		}
	}
	for g, want := range map[layout.Geometry]string{
		{K: 1, M: 2}: "[1] [1]",
		{K: 4, M: 2}: "[27 28 18 20] [28 27 20 18]",
		{K: 8, M: 3}: "[26 132 186 51 231 16 198 39] [132 26 51 186 16 231 39 198] [186 51 26 132 198 39 231 16]",
	} {
		rows, _ := matrixOf(g)
		if got := strings.Trim(fmt.Sprint(rows[g.K:]), "[]"); "["+got+"]" != want {
			t.Errorf("%v: parity rows [%s], frozen are %s", g, got, want)
		}
	}
}

func TestEveryLossPatternIsDecoded(t *testing.T) {
	r, table := rand.New(rand.NewSource(1)), mulTable()
	for _, g := range geometries() {
		c, length := mustFor(t, g), 64+r.Intn(64)
		full := sample(r, &table, referenceMatrix(g), g, g.DataMask(), length)
		checkEncode(t, c, full)
		for lost := layout.Mask(1); lost < 1<<g.Shards(); lost++ {
			if lost.Count() <= int(g.M) {
				checkDecode(t, c, full, lost, 0, lost)
			}
		}
	}
}

func TestEveryLossPatternOfNarrowStripesIsDecoded(t *testing.T) {
	r, table := rand.New(rand.NewSource(2)), mulTable()
	for _, g := range geometries() {
		if g.K > 6 {
			continue
		}
		c, matrix := mustFor(t, g), referenceMatrix(g)
		for data := layout.Mask(1); data <= g.DataMask(); data++ {
			units := sample(r, &table, matrix, g, data, 96)
			checkEncode(t, c, units)
			part := data | g.ParityMask()
			for lost := part; lost != 0; lost = (lost - 1) & part {
				if lost.Count() <= int(g.M) {
					checkDecode(t, c, units, lost, g.DataMask()&^data, lost)
				}
			}
		}
	}
}

func TestSubRangesAndSomeOfTheLostAreDecoded(t *testing.T) {
	r, table := rand.New(rand.NewSource(3)), mulTable()
	for range 3000 {
		g := geometries()[r.Intn(64)]
		data := layout.Mask(r.Intn(int(g.DataMask()))+1) & g.DataMask()
		units := sample(r, &table, referenceMatrix(g), g, data, 4096)
		from := r.Intn(4096)
		to := from + 1 + r.Intn(4096-from)
		for s := range units {
			if units[s] != nil {
				units[s] = units[s][from:to]
			}
		}
		lost := layout.Mask(0)
		for range g.M {
			s, _ := (data | g.ParityMask()).Nth(r.Intn((data | g.ParityMask()).Count()))
			lost = lost.With(s)
		}
		checkDecode(t, mustFor(t, g), units, lost, g.DataMask()&^data, lost&layout.Mask(r.Uint32()))
	}
}

func checkEncode(t *testing.T, c *Coder, want [][]byte) {
	t.Helper()
	k := int(c.geometry.K)
	got := append([][]byte(nil), want...)
	for s := k; s < len(got); s++ {
		got[s] = bytes.Repeat([]byte{0xAA}, len(want[s]))
	}
	if err := c.Encode(got); err != nil {
		t.Fatalf("%v: %v", c.geometry, err)
	}
	for s := k; s < len(got); s++ {
		if !bytes.Equal(got[s], want[s]) {
			t.Fatalf("%v: parity %d differs from the reference", c.geometry, s)
		}
	}
}

// checkDecode decodes want with lost missing, and sees that nothing else was
// written to.
func checkDecode(t *testing.T, c *Coder, full [][]byte, lost, zero, want layout.Mask) {
	t.Helper()
	have := (c.geometry.DataMask() | c.geometry.ParityMask()) &^ zero &^ lost
	units := make([][]byte, len(full))
	for s := range full {
		switch i := layout.ShardIndex(s); {
		case have.Has(i):
			units[s] = full[s]
		case want.Has(i):
			units[s] = bytes.Repeat([]byte{0xAA}, len(full[c.geometry.K]))
		}
	}
	if err := c.Reconstruct(units, have, zero, want); err != nil {
		t.Fatalf("%v lost %b zero %b: %v", c.geometry, lost, zero, err)
	}
	for s := range full {
		if (have | want).Has(layout.ShardIndex(s)) && !bytes.Equal(units[s], full[s]) {
			t.Fatalf("%v lost %b zero %b want %b: shard %d is wrong", c.geometry, lost, zero, want, s)
		}
	}
}

func TestTooFewUnitsAreRefused(t *testing.T) {
	c := mustFor(t, layout.Geometry{K: 4, M: 2})
	units := benchUnits(c.Geometry(), 64)
	if err := c.Reconstruct(units, 0b001110, 0, 1); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("three of four: got %v, want unavailable", err)
	}
	if err := c.Reconstruct(units, 0b001111, 0, 1); !errors.Is(err, errs.InvalidArgument) {
		t.Fatalf("wanted and at hand: got %v, want invalid-argument", err)
	}
	if err := c.Encode(units[:5]); !errors.Is(err, errs.InvalidArgument) {
		t.Fatalf("five units: got %v, want invalid-argument", err)
	}
	units[2] = units[2][:63]
	if err := c.Encode(units); !errors.Is(err, errs.InvalidArgument) {
		t.Fatalf("unequal lengths: got %v, want invalid-argument", err)
	}
	if _, err := For(layout.Geometry{K: 17, M: 1}); !errors.Is(err, errs.InvalidArgument) {
		t.Fatalf("17+1: got %v, want invalid-argument", err)
	}
}

func TestZeroUnitsAreWrittenAsZeros(t *testing.T) {
	c := mustFor(t, layout.Geometry{K: 4, M: 2})
	units := benchUnits(c.Geometry(), 64)
	if err := c.Reconstruct(units, 0b110000, 0b1101, 0b0101); err != nil {
		t.Fatal(err)
	}
	if zeros := make([]byte, 64); !bytes.Equal(units[0], zeros) || !bytes.Equal(units[2], zeros) {
		t.Fatal("a unit known to be zeros was not given as zeros")
	}
}

func TestProgramsAreBounded(t *testing.T) {
	c := mustFor(t, layout.Geometry{K: 16, M: 1})
	units := benchUnits(c.Geometry(), 64)
	for data := 1; data < 2*maxPrograms; data++ {
		at := append([][]byte(nil), units...)
		for s := range 16 {
			if bits.Reverse16(uint16(data))>>s&1 == 0 {
				at[s] = nil
			}
		}
		if err := c.Encode(at); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.programs) > maxPrograms {
		t.Fatalf("%d programs kept, at most %d are allowed", len(c.programs), maxPrograms)
	}
}

func TestOneCoderServesManyGoroutines(t *testing.T) {
	var set Set
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				c, err := set.For(layout.Geometry{K: 4, M: uint8(1 + i%4)})
				if err != nil {
					t.Error(err)
					return
				}
				units := benchUnits(c.Geometry(), 256)
				if err := c.Encode(units); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNarrowEncodeAllocatesNothing(t *testing.T) {
	c := mustFor(t, layout.Geometry{K: 4, M: 2})
	units := benchUnits(c.Geometry(), 4096)
	units[0], units[1], units[3] = nil, nil, nil
	if n := testing.AllocsPerRun(100, func() { _ = c.Encode(units) }); n > 0 && !raceEnabled {
		t.Fatalf("%v allocations per stripe", n)
	}
}
