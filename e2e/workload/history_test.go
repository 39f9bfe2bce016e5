package workload

import (
	"io"
	"strings"
	"testing"
)

// image is a volume in memory.
type image []byte

func (m image) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(len(m)) {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, m[off:]), nil
}

// apply carries out the first n blocks of an operation.
func (m image) apply(op Op, n uint64) {
	for i := range n {
		b := m[(op.Block+i)*BlockSize:][:BlockSize]
		clear(b)
		if !op.Discard {
			Fill(b, "v", Stamp{op.Block + i, op.Number, i})
		}
	}
}

const blocks = 64

var plan = Plan{Volume: "v", Seed: 7, First: 1, Blocks: blocks, Most: 8}

// written gives an image after the first n operations, and the one after them.
func written(n int) (image, Op) {
	m, next := make(image, blocks*BlockSize), plan.Ops()
	for range n {
		op := next()
		m.apply(op, op.Count)
	}
	return m, next()
}

func TestEveryPrefixPassesAndNothingElse(t *testing.T) {
	for n := range 60 {
		m, op := written(n)
		h := NewHistory("v", blocks)
		if err := h.Crashed(m, plan, uint64(max(0, n-3)), uint64(n+5)); err != nil {
			t.Fatalf("%d operations: %v", n, err)
		}
		if err := NewHistory("v", blocks).Crashed(m, plan, uint64(n), uint64(n)); err != nil {
			t.Fatalf("%d operations, all flushed: %v", n, err)
		}
		for part := range op.Count {
			m, _ := written(n)
			m.apply(op, part)
			if err := NewHistory("v", blocks).Crashed(m, plan, uint64(n), uint64(n+5)); err != nil {
				t.Fatalf("%d operations and %d blocks: %v", n, part, err)
			}
		}
	}
}

func TestLostFlushedWriteIsFound(t *testing.T) {
	for n := range 60 {
		if m, op := written(n); !op.Discard && NewHistory("v", blocks).Crashed(m, plan, uint64(n+1), uint64(n+5)) == nil {
			t.Fatalf("operation %d was flushed and is not there, and nobody saw it", n+1)
		}
	}
}

func TestGapInTheOrderIsFound(t *testing.T) {
	missed := 0
	for n := 1; n < 40; n++ {
		m, next := make(image, blocks*BlockSize), plan.Ops()
		var skipped Op
		for i := range n + 1 {
			if op := next(); i != n-1 {
				m.apply(op, op.Count)
			} else {
				skipped = op
			}
		}
		whole, _ := written(n + 1)
		before, _ := written(n - 1)
		if string(whole) == string(m) || string(before) == string(m) {
			missed++ // the next operation covers it, or shows nothing itself
			continue
		}
		if NewHistory("v", blocks).Crashed(m, plan, 0, uint64(n+1)) == nil && !skipped.Discard {
			t.Fatalf("operation %d is missing before %d, and nobody saw it", n, n+1)
		}
	}
	if missed > 10 {
		t.Fatalf("%d cases showed nothing", missed)
	}
}

func TestTornAndForeignBlocksAreFound(t *testing.T) {
	cases := map[string]func(image){
		"torn":          func(m image) { m[100] ^= 1 },
		"of elsewhere":  func(m image) { Fill(m[:BlockSize], "v", Stamp{Block: 9, Op: 1}) },
		"other volume":  func(m image) { Fill(m[:BlockSize], "w", Stamp{Block: 0, Op: 1}) },
		"not begun yet": func(m image) { Fill(m[:BlockSize], "v", Stamp{Block: 0, Op: 99}) },
	}
	for name, damage := range cases {
		m, _ := written(30)
		Fill(m[:BlockSize], "v", Stamp{Block: 0, Op: 1})
		damage(m)
		if NewHistory("v", blocks).Crashed(m, plan, 0, 40) == nil {
			t.Errorf("a block that is %s passed", name)
		}
	}
}

func TestProgressLeavesOutACutLine(t *testing.T) {
	began, flushed := Progress("began 1\nbegan 2\nflushed 2\nbegan 3\nflush")
	if began != 3 || flushed != 2 {
		t.Fatalf("got %d, %d, want 3, 2", began, flushed)
	}
	if began, _ := Progress(strings.Repeat("began 12\n", 2) + "began 1"); began != 12 {
		t.Fatalf("got %d, want 12", began)
	}
}

// A write of which nothing is seen, because the discard after it took all of it, is not
// where the content ends.
func TestAWriteUnderALaterDiscardIsNotTheEnd(t *testing.T) {
	found := 0
	for seed := uint64(1); found < 20; seed++ {
		p := plan
		p.Seed = seed
		m, next := make(image, blocks*BlockSize), p.Ops()
		before := next()
		for n := uint64(2); n < 60; n++ {
			m.apply(before, before.Count)
			op := next()
			if op.Discard && !before.Discard && op.Block <= before.Block && op.Block+op.Count >= before.Block+before.Count {
				found++
				after := append(image{}, m...)
				after.apply(op, op.Count)
				if err := NewHistory("v", blocks).Crashed(after, p, n-2, n+2); err != nil {
					t.Fatalf("seed %d, operations up to %d: %v", seed, n, err)
				}
			}
			before = op
		}
	}
}
