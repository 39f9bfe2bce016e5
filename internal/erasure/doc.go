// Package erasure computes the parity of stripes and makes lost units again.
//
// It owns the code (which is part of the on-disk format) and knows nothing of
// headers, checksums, disks or networks: whoever calls it has checked by CRC
// that what it hands in is right, and checks by CRC what it gets out.
//
// The code is systematic Reed-Solomon over GF(2^8) with the polynomial 0x11D.
// Its matrix is the (k+m) x k Vandermonde matrix (row r is 1, r, r², …) times
// the inverse of its top square, so that the first k rows are the identity and
// row k+p gives parity p. Both are frozen; a test holds samples.
//
// A data unit that holds nothing counts as zeros and is neither read nor
// written. This is more than a saving: a stripe with n data units is a code
// word of an (n+m, n) code, so any n participants give all others. A lost
// 4 KiB stripe is decoded from one parity unit, whatever k is.
//
// Every computation is one product of a small matrix with the units at hand,
// a program. Programs are made once per pattern of (data units, inputs,
// outputs) and kept, at most maxPrograms of them.
//
// All calls run on the caller's goroutine and start no other: stripes are many,
// and cores are kept busy by different stripes, not by pieces of one.
//
// Invariants:
//
//	I1  Reconstruct never writes to a unit outside want.
//	I2  What depends on bytes is a sum over the units in have only.
package erasure
