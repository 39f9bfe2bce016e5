package simclient

import (
	"strake/client/internal/extent"
	"strake/client/internal/write"
	"strake/internal/errs"
	"strake/internal/layout"
)

// piece is an extent that is read from the shards into the read's buffer.
type piece struct {
	extent.Extent
	at int
}

// Read reads whole blocks. A segment that was freed since the map was looked up
// holds nothing that the map still names: then the map is looked up again.
func (v *Volume) Read(f *Fiber, first layout.BlockNumber, count layout.BlockCount) ([]byte, error) {
	buf := make([]byte, count.Bytes())
	for try := 0; ; try++ {
		pieces, err := v.resolve(f, buf, first)
		if err != nil || len(pieces) == 0 {
			return buf, err
		}
		err = v.fetch(f, buf, pieces)
		if !v.outdated(err) || try == 2 {
			return buf, err
		}
		if err := v.Refresh(f); err != nil {
			return buf, err
		}
	}
}

// outdated tells whether the map, looked up again, may not name what failed.
func (v *Volume) outdated(err error) bool {
	kind := errs.KindOf(err)
	return kind == errs.NotFound || kind == errs.Corrupt && v.w == nil && v.snapshot == 0
}

// resolve looks a range up: pending writes first, then the map. What is zero or
// in memory is in buf afterwards; the rest are pieces.
func (v *Volume) resolve(f *Fiber, buf []byte, first layout.BlockNumber) ([]piece, error) {
	whole := layout.Range{Start: first, Count: layout.Blocks(int64(len(buf)))}
	for {
		extents, need := v.tree.Lookup(whole, nil)
		if need == nil {
			return v.place(buf, whole, extents), nil
		}
		if err := v.loadPages(f, need); err != nil {
			return nil, err
		}
	}
}

// place sorts a range's extents by where their bytes are.
func (v *Volume) place(buf []byte, whole layout.Range, extents []extent.Extent) (pieces []piece) {
	for _, e := range extents {
		if len(v.overlay.writes) == 0 {
			pieces = v.placeExtent(pieces, buf, whole, e)
			continue
		}
		for i := layout.BlockCount(0); i < e.Count; i++ {
			one := e
			one.Start, one.Count = e.Start+layout.BlockNumber(i), 1
			if one.Place.Index += uint32(i); e.Zero {
				one.Place = extent.Place{}
			}
			if data, ok := v.overlay.find(one.Start); ok {
				at := layout.BlockCount(one.Start - whole.Start).Bytes()
				clear(buf[at : at+layout.BlockSize])
				copy(buf[at:], data)
			} else {
				pieces = v.placeExtent(pieces, buf, whole, one)
			}
		}
	}
	return pieces
}

func (v *Volume) placeExtent(pieces []piece, buf []byte, whole layout.Range, e extent.Extent) []piece {
	at := layout.BlockCount(e.Start - whole.Start).Bytes()
	if e.Zero {
		clear(buf[at : at+e.Count.Bytes()])
		return pieces
	}
	if v.w != nil && v.w.unflushed(buf, e, int(at)) {
		return pieces
	}
	return append(pieces, piece{e, int(at)})
}

// unflushed copies the bytes of an extent that lies in a stripe that is not
// flushed; false when it doesn't.
func (w *writer) unflushed(buf []byte, e extent.Extent, at int) bool {
	s := w.stripes.places[placeKey{e.Place.Segment, e.Place.Offset}]
	if s == nil {
		return false
	}
	begin, end := layout.BlockCount(e.Place.Index), layout.BlockCount(e.Place.Index)+e.Count
	for _, p := range s.Pieces {
		if lo, hi := max(begin, p.At), min(end, p.At+p.Blocks); lo < hi {
			copy(buf[at+int((lo-begin).Bytes()):], w.data(p, lo, hi))
		}
	}
	return true
}

// data gives payload blocks lo to hi of a stripe that lie in one piece of it.
func (w *writer) data(p write.Piece, lo, hi layout.BlockCount) []byte {
	return w.payloads[p.Write].data[(p.First + lo - p.At).Bytes():][:(hi - lo).Bytes()]
}

// loadPages reads pages of the extent map and installs them.
func (v *Volume) loadPages(f *Fiber, refs []extent.PageRef) error {
	for _, ref := range refs {
		page := make([]byte, ref.Bytes())
		where := extent.Extent{Range: layout.Range{Count: layout.BlockCount(ref.Blocks)},
			Place: extent.Place{Segment: ref.Segment, Offset: ref.Offset, Shape: ref.Shape, Index: ref.Index}}
		if err := v.fetch(f, page, []piece{{where, 0}}); err != nil {
			return errs.Wrap(err, "load a page of the extent map")
		}
		if err := v.tree.Install(ref, page); err != nil {
			return errs.Wrap(err, "load a page of the extent map")
		}
	}
	return nil
}
