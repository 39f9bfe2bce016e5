package erasure

import "strake/internal/layout"

// The reference: Reed-Solomon as the package comment defines it, slow and
// obvious, and with nothing of the library.

// mul multiplies in GF(2^8) with the polynomial 0x11D, bit by bit.
func mul(a, b byte) byte {
	var product byte
	for ; b != 0; b >>= 1 {
		if b&1 != 0 {
			product ^= a
		}
		high := a&0x80 != 0
		a <<= 1
		if high {
			a ^= 0x1D
		}
	}
	return product
}

// inv finds the inverse by trying.
func inv(a byte) byte {
	for b := 1; b < 256; b++ {
		if mul(a, byte(b)) == 1 {
			return byte(b)
		}
	}
	panic("zero has no inverse")
}

// referenceMatrix is Vandermonde times the inverse of its top square.
func referenceMatrix(g layout.Geometry) [][]byte {
	k, n := int(g.K), g.Shards()
	v := make([][]byte, n)
	for r := range v {
		v[r] = make([]byte, k)
		power := byte(1)
		for c := range v[r] {
			v[r][c] = power
			power = mul(power, byte(r))
		}
	}
	// Column operations that turn the top square into the identity multiply
	// all of v by the inverse of that square (whose corners are all regular).
	for c := range k {
		scale := inv(v[c][c])
		for r := range v {
			v[r][c] = mul(v[r][c], scale)
		}
		for other := range k {
			if f := v[c][other]; other != c && f != 0 {
				for r := range v {
					v[r][other] ^= mul(f, v[r][c])
				}
			}
		}
	}
	return v
}

// mulTable holds all products, so that the reference ends before the test does.
func mulTable() (table [256][256]byte) {
	for a := range 256 {
		for b := range 256 {
			table[a][b] = mul(byte(a), byte(b))
		}
	}
	return table
}

// referenceEncode fills the parity units; nil data units are zeros.
func referenceEncode(table *[256][256]byte, matrix [][]byte, g layout.Geometry, units [][]byte, length int) {
	for p := int(g.K); p < g.Shards(); p++ {
		units[p] = make([]byte, length)
		for d := range int(g.K) {
			for i := range units[d] {
				units[p][i] ^= table[matrix[p][d]][units[d][i]]
			}
		}
	}
}
