package workload

import (
	"errors"
	"fmt"
	"io"
)

// History is what a volume must hold: the last stamp of every block after a
// number of operations, all of which are there for sure.
type History struct {
	volume string
	blocks []Stamp
	last   uint64 // the last operation that is there
}

// NewHistory is the history of a new volume.
func NewHistory(volume string, blocks uint64) *History {
	return &History{volume: volume, blocks: make([]Stamp, blocks)}
}

// Last is the last operation that is known to be there.
func (h *History) Last() uint64 { return h.last }

// apply applies one block of an operation.
func (h *History) apply(op Op, i uint64) {
	h.blocks[op.Block+i] = Stamp{}
	if !op.Discard {
		h.blocks[op.Block+i] = Stamp{op.Block + i, op.Number, i}
	}
	h.last = op.Number
}

// Crashed checks a volume after its writer's end. The writer followed the plan,
// began operations up to `began`, and was told that those up to `flushed` are
// durable. The history then stands at the operation that the volume's content
// ends with.
func (h *History) Crashed(r io.ReaderAt, p Plan, flushed, began uint64) error {
	found, err := h.scan(r)
	if err != nil {
		return err
	}
	end := lastOp(found) // the content does not end before it
	next, n := p.Ops(), p.First
	for ; n < max(flushed, end); n++ {
		h.applyAll(next())
	}
	bad := fmt.Errorf("nothing of it is there")
	same := func() bool {
		bad = h.compare(found)
		return bad == nil
	}
	if n > flushed && same() {
		return nil
	}
	for ; n <= began; n++ {
		op := next()
		for i := range op.Count {
			h.apply(op, i)
			if (n > flushed || i == op.Count-1) && same() {
				return nil
			}
		}
	}
	return fmt.Errorf("operations 1 to %d were flushed and %d begun; the content shows operation %d and is no prefix of the write order: %w",
		flushed, began, end, bad)
}

func lastOp(found []Stamp) (last uint64) {
	for _, s := range found {
		last = max(last, s.Op)
	}
	return last
}

func (h *History) applyAll(op Op) {
	for i := range op.Count {
		h.apply(op, i)
	}
}

// Check checks a volume whose writer was not disturbed: all operations up to the
// history's last are there, and nothing else.
func (h *History) Check(r io.ReaderAt) error {
	found, err := h.scan(r)
	if err != nil {
		return err
	}
	return h.compare(found)
}

// Advance applies a plan's operations up to a number, without looking.
func (h *History) Advance(p Plan, to uint64) {
	next := p.Ops()
	for n := p.First; n <= to; n++ {
		h.applyAll(next())
	}
}

// scan reads every block's stamp.
func (h *History) scan(r io.ReaderAt) ([]Stamp, error) {
	const most = 1024
	found := make([]Stamp, 0, len(h.blocks))
	buf := make([]byte, most*BlockSize)
	for at := 0; at < len(h.blocks); at += most {
		part := buf[:min(most, len(h.blocks)-at)*BlockSize]
		if _, err := r.ReadAt(part, int64(at)*BlockSize); err != nil {
			return nil, fmt.Errorf("read %d blocks at block %d: %w", len(part)/BlockSize, at, err)
		}
		for i := 0; i < len(part); i += BlockSize {
			s, err := Read(part[i:i+BlockSize], h.volume, uint64(at+i/BlockSize))
			if err != nil {
				return nil, err
			}
			found = append(found, s)
		}
	}
	return found, nil
}

// compare tells the first blocks that differ.
func (h *History) compare(found []Stamp) error {
	var bad []error
	for b, want := range h.blocks {
		if got := found[b]; got != want {
			if bad = append(bad, fmt.Errorf("block %d: got operation %d (block %d of it), want operation %d (block %d of it)", b, got.Op, got.Index, want.Op, want.Index)); len(bad) == 8 {
				break
			}
		}
	}
	return errors.Join(bad...)
}
