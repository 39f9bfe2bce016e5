// Package workload writes blocks that tell on themselves, and checks what a volume
// holds after a crash against what its writer did.
//
// Every block carries its volume, its number, the number of the operation that
// wrote it and its place in that operation, under a checksum. Operations follow
// from a seed, so the checker needs to know two things alone of a writer that was
// killed: how many operations it began, and which of them were flushed.
//
// What Check proves (design §4): P1, every flushed operation is there; P2, the
// content is exactly a prefix of the write order, down to the block; P3, no block
// is wrong, foreign or torn.
//
// The order of writes is the order of calls: one goroutine makes them. Within an
// operation, blocks are ordered as in its buffer, since a large write may be cut
// into several stripes.
package workload
