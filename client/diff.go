package client

import (
	"context"

	"strake/client/internal/content"
	"strake/client/internal/extent"
	"strake/internal/errs"
	"strake/internal/layout"
)

// Diff calls changed with the ranges in which two snapshots, or volumes as they
// are now, differ: whole blocks, ascending, each range as long as can be. Past the
// end of the shorter one zeros are compared. What lies at the same place is the
// same; else the blocks' checksums are compared, and no data is read. changed's
// error ends it.
func (c *Cell) Diff(ctx context.Context, from, to string, changed func(off, n int64) error) error {
	op := "compare " + from + " with " + to
	a, err := c.Open(ctx, from, OpenOptions{})
	if err != nil {
		return errs.Wrap(err, "%s", op)
	}
	defer a.Close()
	b, err := c.Open(ctx, to, OpenOptions{})
	if err != nil {
		return errs.Wrap(err, "%s", op)
	}
	defer b.Close()
	d := differ{changed: changed, end: layout.BlockNumber(layout.Blocks(max(a.Size(), b.Size())))}
	for i, v := range []*Volume{a, b} {
		d.sides[i] = side{v, newSummer(c), make([]uint32, min(d.end, sumWindow))}
	}
	for at := layout.BlockNumber(0); at < d.end; {
		if at, err = d.window(ctx, at); err != nil {
			return errs.Wrap(err, "%s", op)
		}
	}
	return d.flush()
}

// differ compares two handles, window by window.
type differ struct {
	sides   [2]side
	end     layout.BlockNumber
	changed func(off, n int64) error
	run     layout.Range // not told yet
}

// side is one of two handles that are compared.
type side struct {
	v    *Volume
	s    *summer
	sums []uint32 // of the window
}

// window compares the window that begins at first, and gives where the next begins.
// What lies at the same place in both has the same checksum there: none.
func (d *differ) window(ctx context.Context, first layout.BlockNumber) (next layout.BlockNumber, err error) {
	a, b := &d.sides[0], &d.sides[1]
	clear(a.sums)
	clear(b.sums)
	next = first
	for {
		r := a.s.step(first, next, d.end)
		if r.Count = min(r.Count, b.s.step(first, next, d.end).Count); r.Count == 0 {
			break
		}
		x, err := a.v.extents(ctx, r)
		if err != nil {
			return next, err
		}
		y, err := b.v.extents(ctx, r)
		if err != nil {
			return next, err
		}
		x, y = apart(x, y)
		a.s.add(x, first, a.sums)
		b.s.add(y, first, b.sums)
		next = r.End()
	}
	for _, side := range d.sides {
		if err := side.s.fill(ctx, side.sums); err != nil {
			return next, err
		}
	}
	for i := range next - first {
		if a.sums[i] != b.sums[i] {
			if err := d.add(first + i); err != nil {
				return next, err
			}
		}
	}
	return next, nil
}

// add takes a block that differs.
func (d *differ) add(at layout.BlockNumber) error {
	if d.run.Count > 0 && d.run.End() == at {
		d.run.Count++
		return nil
	}
	if err := d.flush(); err != nil {
		return err
	}
	d.run = layout.Range{Start: at, Count: 1}
	return nil
}

func (d *differ) flush() error {
	if d.run.Count == 0 {
		return nil
	}
	r := d.run
	d.run = layout.Range{}
	return d.changed(layout.BlockCount(r.Start).Bytes(), r.Count.Bytes())
}

// apart leaves out of two lists of extents of one range what lies at the same
// place in both, and cuts the rest alike.
func apart(a, b []extent.Extent) (x, y []extent.Extent) {
	for len(a) > 0 && len(b) > 0 {
		n := min(a[0].Count, b[0].Count)
		p, q := a[0].Part(0, n), b[0].Part(0, n)
		if p.Zero != q.Zero || p.Place != q.Place {
			x, y = append(x, p), append(y, q)
		}
		a, b = rest(a, n), rest(b, n)
	}
	return x, y
}

// rest drops the first n blocks of a list.
func rest(list []extent.Extent, n layout.BlockCount) []extent.Extent {
	if n == list[0].Count {
		return list[1:]
	}
	list[0] = list[0].Part(n, list[0].Count-n)
	return list
}

// digestOf computes the content digest of a handle from stripe headers.
func (v *Volume) digestOf(ctx context.Context) (digest [digestBytes]byte, blocks uint64, err error) {
	var d content.Digest
	s := newSummer(v.cell)
	end := layout.BlockNumber(layout.Blocks(v.Size()))
	sums := make([]uint32, min(end, sumWindow))
	for first := layout.BlockNumber(0); first < end; {
		at := first
		for r := s.step(first, at, end); r.Count > 0; r = s.step(first, at, end) {
			list, err := v.extents(ctx, r)
			if err != nil {
				return digest, 0, err
			}
			s.add(list, first, sums)
			at = r.End()
		}
		if err := s.fill(ctx, sums); err != nil {
			return digest, 0, err
		}
		for i, sum := range sums[:at-first] {
			d.Add(first+layout.BlockNumber(i), sum)
		}
		first = at
	}
	digest, blocks = d.Sum()
	return digest, blocks, nil
}
