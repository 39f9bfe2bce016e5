package extent

import (
	"encoding/binary"
	"math/bits"

	"strake/internal/errs"
)

// A table is rows of up to maxCols numbers, packed: each column is stored as
// its least value and, per row, the difference to it in as few bits as the
// largest difference takes. Rows have one width, so that any field of any row
// is one load and a shift, and a binary search needs no decoding. Random 4 KiB
// extents take 5 to 8 bytes each this way; a varint encoding takes 8 to 12 and
// needs restart points. One odd value widens its column for the whole page,
// which is why pages are small.
//
//	0  2    rows
//	2  9c   columns: least value (8), bits per row (1)
//	.. ..   rows, column after column, bit 0 first, no gaps between rows
//	..  9   zeros, so that a load never leaves the table
//
// The encoding is canonical: least values and widths are the smallest possible.
type table struct {
	rows   int
	stride int // bits per row
	cols   [maxCols]column
	bits   []byte
}

type column struct {
	base  uint64
	at    uint16 // bit offset in a row
	width uint8
}

// row is a decoded row; the columns beyond the table's own are 0.
type row [maxCols]uint64

const (
	maxCols   = 8
	slack     = 9
	colHeader = 9
	// maxRows bounds the rows of one table.
	maxRows = 1 << 14
)

// get gives one field.
func (t *table) get(i, col int) uint64 {
	c := &t.cols[col]
	if c.width == 0 {
		return c.base
	}
	bit := i*t.stride + int(c.at)
	b, shift := t.bits[bit>>3:], uint(bit&7)
	v := binary.LittleEndian.Uint64(b) >> shift
	if shift+uint(c.width) > 64 {
		v |= uint64(b[8]) << (64 - shift)
	}
	return c.base + v&(1<<c.width-1)
}

func (t *table) row(i, cols int) (r row) {
	for c := range cols {
		r[c] = t.get(i, c)
	}
	return r
}

// search gives the last row with a key (column 0) of at most k, -1 for none.
func (t *table) search(k uint64) int {
	lo, hi := 0, t.rows
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.get(mid, 0) <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// span is what a column's encoding depends on.
type span struct {
	n      int
	lo, hi row
}

func (s *span) add(r *row) {
	if s.n == 0 {
		s.lo, s.hi = *r, *r
	}
	for c, v := range r {
		s.lo[c], s.hi[c] = min(s.lo[c], v), max(s.hi[c], v)
	}
	s.n++
}

// size is the encoded length of a table of cols columns.
func (s *span) size(cols int) int {
	stride := 0
	for c := range cols {
		stride += bits.Len64(s.hi[c] - s.lo[c])
	}
	return 2 + colHeader*cols + (s.n*stride+7)/8 + slack
}

// appendTable encodes rows.
func appendTable(b []byte, rows []row, cols int) []byte {
	var s span
	for i := range rows {
		s.add(&rows[i])
	}
	at := len(b)
	b = append(b, make([]byte, s.size(cols))...)
	binary.LittleEndian.PutUint16(b[at:], uint16(len(rows)))
	var width [maxCols]int
	for c := range cols {
		width[c] = bits.Len64(s.hi[c] - s.lo[c])
		h := b[at+2+c*colHeader:]
		binary.LittleEndian.PutUint64(h, s.lo[c])
		h[8] = byte(width[c])
	}
	body, bit := b[at+2+cols*colHeader:], 0
	for i := range rows {
		for c := range cols {
			putBits(body, bit, rows[i][c]-s.lo[c], width[c])
			bit += width[c]
		}
	}
	return b
}

func putBits(b []byte, bit int, v uint64, width int) {
	b = b[bit>>3:]
	shift := uint(bit & 7)
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)|v<<shift)
	if int(shift)+width > 64 {
		b[8] = byte(v >> (64 - shift))
	}
}

// parseTable reads a table from the start of b and gives the bytes after it.
// The rows stay where they are.
func parseTable(b []byte, cols int) (t table, rest []byte, err error) {
	if len(b) < 2+cols*colHeader {
		return t, nil, bad("%d bytes for a table of %d columns", len(b), cols)
	}
	t.rows = int(binary.LittleEndian.Uint16(b))
	for c := range cols {
		h := b[2+c*colHeader:]
		t.cols[c] = column{binary.LittleEndian.Uint64(h), uint16(t.stride), h[8]}
		if h[8] > 64 {
			return t, nil, bad("column %d of %d bits", c, h[8])
		}
		t.stride += int(h[8])
	}
	b = b[2+cols*colHeader:]
	n := (t.rows*t.stride+7)/8 + slack
	if t.rows > maxRows || n > len(b) {
		return t, nil, bad("%d rows of %d bits in %d bytes", t.rows, t.stride, len(b))
	}
	t.bits = b[:n:n]
	return t, b[n:], nil
}

// canonical tells whether the table is what appendTable makes of its rows.
func (t *table) canonical(s *span, cols int) bool {
	for c := range cols {
		if t.cols[c].base != s.lo[c] || int(t.cols[c].width) != bits.Len64(s.hi[c]-s.lo[c]) {
			return false
		}
	}
	used := t.rows * t.stride
	if used&7 != 0 && t.bits[used>>3]>>(used&7) != 0 {
		return false
	}
	return allZero(t.bits[(used+7)/8:])
}

func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

func bad(format string, args ...any) error {
	return errs.New(errs.Corrupt, "read map page", format, args...)
}
