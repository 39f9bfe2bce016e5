// Package clean decides what the cleaner of a volume does: whether there is
// garbage worth collecting, and which segments to empty for it. It is pure: it
// sees figures and gives segments. The shell (package client) counts live blocks,
// relocates what is live in the segments that Choose gives, and has them retired.
//
// # What garbage is
//
// A segment stores bytes on k+m shards. Its live blocks, packed into full stripes
// of the geometry that relocations get now, would need fewer: the difference is
// its gain. So one figure stands for overwritten and discarded blocks, for narrow
// stripes (one block with m parity units) and for segments that were narrowed
// while servers were missing. A segment that a snapshot needs gains nothing,
// whatever is dead in it, unless snapshots are taken and removed in turn
// (layout.Held.Rolls): then it is emptied once half of it is garbage, comes back
// when the snapshots that hold it now are gone, and is left alone while the cell's
// space is short.
//
// # When it cleans, and how far
//
// While a volume is written, garbage may pile up to as much as is needed: blocks
// that will be overwritten soon are then not moved before. Once it is idle, or the
// cell's space is short, a tenth of what is needed is garbage enough, and it is
// brought down to half of that. Less than MinGarbage is left alone.
//
// # Which segments
//
// Cost and benefit, after Rosenblum and Ousterhout: what emptying a segment gives
// back, for what must be read and written for it, weighted by its age: what was
// written lately loses more blocks by itself. The weight goes from one half to one
// and a half, not further, so that a young segment full of garbage always comes
// before an old one with little.
//
// # Invariants
//
//   - I1 Choose gives each segment once, none that gains less than a twentieth of
//     what it stores, and none but what List has.
//   - I2 Cleaning ends: what a round writes is less than what it gives back, so
//     the garbage falls with each round that is carried out.
package clean
