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
	d := differ{old: newSummer(a), new: newSummer(b), changed: changed}
	end := layout.BlockNumber(layout.Blocks(max(a.Size(), b.Size())))
	for at := layout.BlockNumber(0); at < end; at += sumWindow {
		r := layout.Range{Start: at, Count: layout.BlockCount(min(end-at, sumWindow))}
		if err := d.window(ctx, r); err != nil {
			return errs.Wrap(err, "%s", op)
		}
	}
	return d.flush()
}

// differ compares two handles, window by window.
type differ struct {
	old, new *summer
	changed  func(off, n int64) error
	sums     [2][]uint32
	run      layout.Range // not told yet
}

func (d *differ) window(ctx context.Context, r layout.Range) error {
	a, err := d.old.v.extents(ctx, r)
	if err != nil {
		return err
	}
	b, err := d.new.v.extents(ctx, r)
	if err != nil {
		return err
	}
	a, b = apart(a, b)
	for i, side := range []struct {
		s    *summer
		list []extent.Extent
	}{{d.old, a}, {d.new, b}} {
		if d.sums[i] == nil {
			d.sums[i] = make([]uint32, sumWindow)
		}
		if err := side.s.fill(ctx, side.list, r.Start, d.sums[i]); err != nil {
			return err
		}
	}
	for _, e := range a {
		for i := range layout.BlockNumber(e.Count) {
			at := e.Start + i
			if d.sums[0][at-r.Start] != d.sums[1][at-r.Start] {
				if err := d.add(at); err != nil {
					return err
				}
			}
		}
	}
	return nil
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
	s := newSummer(v)
	sums := make([]uint32, sumWindow)
	end := layout.BlockNumber(layout.Blocks(v.Size()))
	for at := layout.BlockNumber(0); at < end; at += sumWindow {
		list, err := v.extents(ctx, layout.Range{Start: at, Count: layout.BlockCount(min(end-at, sumWindow))})
		if err != nil {
			return digest, 0, err
		}
		if err := s.fill(ctx, list, at, sums); err != nil {
			return digest, 0, err
		}
		for _, e := range list {
			for i := range layout.BlockNumber(e.Count) {
				if !e.Zero {
					d.Add(e.Start+i, sums[e.Start+i-at])
				}
			}
		}
	}
	digest, blocks = d.Sum()
	return digest, blocks, nil
}
