// Package layout is the pure leaf of strake: identifiers, block and byte
// arithmetic, geometry, and the place of every unit of a stripe.
//
// It owns the vocabulary that every other package shares and nothing else: it
// does no I/O, keeps no state and imports nothing of strake. Identifiers,
// byte offsets, block numbers and counts are separate types, so that mixing
// them does not compile.
//
// How a segment is laid out. A segment is a row of k+m shards. Stripes are
// appended one after another; each takes one row of `Unit` bytes at the same
// offset in every shard that takes part:
//
//	            shard 0   shard 1   shard 2   shard 3 | shard 4   shard 5
//	            data      data      data      data    | parity    parity
//	offset 0    +-------+ +-------+ +-------+ +-------+ +-------+ +-------+
//	stripe 1    | u0    | | u1    | | u2    | | u3    | | P     | | Q     |  full, unit 1 MiB
//	offset 1Mi  +-------+ +-------+ +-------+ +-------+ +-------+ +-------+
//	stripe 2      hole    | u0    |   hole      hole    | P     | | Q     |  narrow, unit 4 KiB
//	            +-------+ +-------+ +-------+ +-------+ +-------+ +-------+
//
// Rows are aligned over all shards on purpose: one offset then names a stripe's
// place in its segment, the extent map stays small, and a degraded read needs
// no header to know where the other units lie. The holes cost nothing (shard
// files are sparse) and count as zeros when parity is computed.
package layout
