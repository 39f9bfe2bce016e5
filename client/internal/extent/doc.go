// Package extent is the extent map of one volume: from blocks to places in
// stripes, and from segments to how many of their blocks are live. It is pure:
// it does no I/O and keeps no time. What it needs read it returns as page refs;
// the shell loads them, calls Install, and asks again.
//
// It owns the form of the map in memory and in map stripes. It does not own
// where pages are placed (the shell's Placer), when a checkpoint is due beyond
// Dirty.Due, nor whether a segment may be deleted (the metadata service).
//
// # Layers over an immutable base
//
//	Apply ──> active layer    runs since the last Freeze        memory only
//	          frozen layer    runs that a checkpoint writes     memory only, while one is under way
//	Lookup ─> base            tree of pages of the newest root  in map stripes, loaded on demand
//
// A layer hides what lies below. Pages are never changed in memory: a checkpoint
// merges the frozen layer into the base, writes new pages for the changed parts,
// and its root becomes the base. So every loaded page is clean and can be
// dropped at any time, memory is bounded by the cap and by what is due to be
// written, an aborted checkpoint costs nothing but its pages, and after a crash
// the layers come back from the headers after Covers. Changing pages in place
// was rejected: a million random writes would dirty, and so pin, a whole map.
//
// # Writes need no page
//
// To keep the live counts, the old place of each overwritten block must be
// subtracted from its segment. Where the leaf is loaded Apply does so at once;
// else the run is marked unsettled and its old places are looked up later, in
// block order and in bulk: by Settle, or by the checkpoint, which visits those
// leaves anyway. Live is exact when Unsettled is 0 and otherwise too high, never
// too low; what a checkpoint writes and retires is always exact.
//
// # Invariants
//
//   - I1 A layer's runs are in order and disjoint, each within one stripe; its
//     unsettled blocks are counted.
//   - I2 Keys ascend within a page and lie in the page's part of the key space;
//     the parts of a page's children lie in its own; encodings are canonical.
//   - I3 Pages never change; a root names only pages that were handed out for
//     writing before its own.
//   - I4 Of each data segment, the base's count plus the layers' changes is the
//     number of blocks that Lookup shows in it, plus unsettled blocks at most.
//   - I5 The table of map segments counts the base's pages, the root page excepted.
//   - I6 The pages' memory is accounted.
//   - I7 A root and the headers after it, applied in seq order, give the map that
//     the writer had, whatever was loaded, settled, evicted or aborted meanwhile.
//
// # What a checkpoint writes
//
// The changed leaves, each once, the inner pages above them, and a root page. A
// leaf is one block, so that scattered 4 KiB writes cost at most one block of
// map per block of data (plus inner pages: 1/300 of it, when more than a few
// hundred blocks changed), and dense ones far less. Measured against the changed
// entries alone, of 5 to 8 bytes, one lone update costs a leaf, an inner page and
// a root page. Buffers in inner pages (B-epsilon) would cut that, but every lookup
// would search them and exact counts need the leaf all the same; below one byte of
// map per byte of data it did not win.
//
// The formats stand in table.go, page.go and root.go. Zeroed and discarded
// ranges are both stored as holes: the map says what a block reads as, not why.
//
// Concurrency: none. One lock of the shell guards a Map and its Checkpoint.
package extent
