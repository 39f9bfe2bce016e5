package erasure

import (
	"errors"

	"github.com/klauspost/reedsolomon"

	"strake/internal/layout"
)

// matrixOf gives the k+m rows of the code. The library builds the matrix but
// does not show it; encoding the k unit vectors reads it out.
func matrixOf(g layout.Geometry) ([][]byte, error) {
	encoder, err := reedsolomon.New(int(g.K), int(g.M), reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
	if err != nil {
		return nil, err
	}
	rows := make([][]byte, g.Shards())
	for r := range rows {
		rows[r] = make([]byte, g.K)
		if r < int(g.K) {
			rows[r][r] = 1
		}
	}
	return rows, encoder.Encode(rows)
}

// errSingular can't happen: every square part of the parity rows is invertible.
var errSingular = errors.New("the matrix of the units at hand has no inverse")

// invert gives the inverse of a square matrix by Gauss-Jordan elimination. It
// works on a; rows are at most four coefficients long.
func invert(a [][]byte) ([][]byte, error) {
	var field reedsolomon.LowLevel
	inverse := identity(len(a))
	for c := range a {
		if err := pivot(a, inverse, c); err != nil {
			return nil, err
		}
		scale := reedsolomon.Inv(a[c][c])
		field.GalMulSlice(scale, clone(a[c]), a[c])
		field.GalMulSlice(scale, clone(inverse[c]), inverse[c])
		for r := range a {
			if f := a[r][c]; r != c && f != 0 {
				field.GalMulSliceXor(f, a[c], a[r])
				field.GalMulSliceXor(f, inverse[c], inverse[r])
			}
		}
	}
	return inverse, nil
}

// pivot swaps a row with a non-zero coefficient into row c of both matrices.
func pivot(a, b [][]byte, c int) error {
	for r := c; r < len(a); r++ {
		if a[r][c] != 0 {
			a[r], a[c] = a[c], a[r]
			b[r], b[c] = b[c], b[r]
			return nil
		}
	}
	return errSingular
}

// combine gives row x matrix.
func combine(row []byte, matrix [][]byte, width int) []byte {
	var field reedsolomon.LowLevel
	sum := make([]byte, width)
	for i, f := range row {
		if f != 0 {
			field.GalMulSliceXor(f, matrix[i], sum)
		}
	}
	return sum
}

func identity(n int) [][]byte {
	m := make([][]byte, n)
	for i := range m {
		m[i] = make([]byte, n)
		m[i][i] = 1
	}
	return m
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
