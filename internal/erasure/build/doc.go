// Package build turns a stripe's payload into the units of its participants, and
// back.
//
// It owns the order of payload in units (see proto/stripe), the padding, and the
// checksums of all units; it knows nothing of servers. Data is never copied: a
// unit is a list of slices of the payload that the writer gathered, in which the
// padding is a shared block of zeros. Only parity has memory of its own, from a
// pool.
//
// Parity and checksums are made in one walk over the stripe, column by column:
// a column is a run of bytes that lies in one piece in every unit and fits the
// processor's cache with all of them, so that each byte is fetched once.
//
// A Builder may be used by many goroutines at once; the Units it gives belong to
// one caller until Release.
package build
