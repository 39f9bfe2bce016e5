// Package content computes the digest of a volume's content: of what its blocks
// hold, not of where they lie. Two volumes with the same bytes have the same
// digest, whatever was written, cleaned, rebuilt or cloned in between. It is pure.
//
// The digest is a tree of SHA-256 over the blocks that are not zero, version 1,
// frozen; numbers are little-endian. A block is told by its CRC32C, which stands
// in stripe headers, so that no data need be read. A block with the checksum of
// zeros counts as zero.
//
//	leaf  of 65,536 blocks from a multiple of that on, unless all are zero:
//	      SHA-256(0, number of its first block (8 bytes),
//	              then of each block that is not zero: number (8), CRC32C (4))
//	root  SHA-256(1, the leaves' hashes in order)
//
// So leaves can be computed apart, and what differs can be found. CRC32C finds
// damage; it is no protection against somebody who makes a collision on purpose.
package content
