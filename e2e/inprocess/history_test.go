package inprocess

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"strake/client"
)

// history is a numbered sequence of block writes, the one order that a volume may
// show prefixes of.
type history struct {
	blocks  []int // of write i: the block, 1 to n
	flushed int   // writes that a flush covered
}

// next begins one more write to a random block.
func (h *history) next(r *rand.Rand, v *client.Volume, blocks int) *client.Completion {
	b := r.IntN(blocks)
	h.blocks = append(h.blocks, b)
	return v.WriteAsync(h.content(len(h.blocks)), int64(b)*block)
}

// content is the block of write i: its number, and bytes that follow from it.
func (h *history) content(i int) []byte {
	p := make([]byte, block)
	for at := 0; at < block; at += 8 {
		binary.LittleEndian.PutUint64(p[at:], uint64(i)<<16|uint64(at/8))
	}
	return p
}

// flush flushes and notes what that covers.
func (h *history) flush(ctx context.Context, v *client.Volume) error {
	n := len(h.blocks)
	err := v.Flush(ctx)
	if err == nil {
		h.flushed = n
	}
	return err
}

// check tells whether the volume is a prefix of the history that holds all
// that was flushed.
func (h *history) check(ctx context.Context, v *client.Volume, blocks int) error {
	got := make([]byte, blocks*block)
	if n, err := v.ReadAtContext(ctx, got, 0); n != len(got) || err != nil {
		return fmt.Errorf("read %d bytes: %w", n, err)
	}
	seen, last := make([]int, blocks), 0
	for b := range seen {
		p := got[b*block:][:block]
		seen[b] = int(binary.LittleEndian.Uint64(p) >> 16)
		if seen[b] > 0 && firstDifference(p, h.content(seen[b])) >= 0 {
			return fmt.Errorf("block %d is torn: it begins as write %d", b, seen[b])
		}
		last = max(last, seen[b])
	}
	if last < h.flushed || last > len(h.blocks) {
		return fmt.Errorf("the last write seen is %d; %d were flushed, %d done", last, h.flushed, len(h.blocks))
	}
	want := make([]int, blocks)
	for i, b := range h.blocks[:last] {
		want[b] = i + 1
	}
	for b := range seen {
		if seen[b] != want[b] {
			return fmt.Errorf("block %d holds write %d, want %d: after %d writes (%d flushed of %d)", b, seen[b], want[b], last, h.flushed, len(h.blocks))
		}
	}
	return nil
}

// keep adds to the history that goes on after a crash: what was lost never was.
func (h *history) keep(ctx context.Context, v *client.Volume, blocks int) error {
	got := make([]byte, blocks*block)
	if _, err := v.ReadAtContext(ctx, got, 0); err != nil {
		return err
	}
	last := 0
	for b := range blocks {
		last = max(last, int(binary.LittleEndian.Uint64(got[b*block:])>>16))
	}
	h.blocks, h.flushed = h.blocks[:last], last
	return nil
}

// run writes in bursts, with a flush now and then.
func (h *history) run(t *testing.T, r *rand.Rand, v *client.Volume, blocks, writes int) {
	t.Helper()
	for range writes {
		h.next(r, v, blocks)
		if r.IntN(60) == 0 {
			if err := h.flush(t.Context(), v); err != nil {
				t.Fatal(err)
			}
		}
	}
}
