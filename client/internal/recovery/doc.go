// Package recovery decides what stands and what falls of a log whose writer is
// gone, and in which order a log is replayed. It is pure: answers in, a plan
// out. Fencing, decoding, the tail's appends and CloseEpoch are its caller's.
//
// A stripe may have copies in several segments (the writer moved on, or an
// earlier recoverer copied the tail). Of each copy, each participant says one
// of three things: it has it, it never had it, it cannot tell.
//
//	R1  A copy stands if no participant says never and enough have it to decode
//	    it (as many as its data mask counts); it falls if one says never; else it
//	    is undecided. Unreadable is never the same as not there.
//	R2  In each segment only the prefix of standing copies counts. What comes
//	    after a fallen copy falls, what comes after an undecided one is undecided.
//	R3  A seq stands if a sealed segment holds it or a copy counts anywhere; it
//	    is undecided if none does and one is undecided.
//	R4  The log ends before the first seq that doesn't stand, missing ones
//	    included, over all segments together. If that one is undecided, so is the
//	    log.
//	R5  At least k of k+m shards of each segment have answered.
//	R6  A segment is blind if a stripe could lie there that no answer would show:
//	    when neither any parity shard (they take part in every stripe) nor all
//	    data shards gave a list that proves absence. A blind segment leaves the
//	    log undecided. It takes more than m shards.
//	R7  What some header calls flushed must stand; a log that ends before is an
//	    error, not a shorter log.
//	R8  A segment's seal ends before the first copy that some participant may lack,
//	    and, if a shard gave no list, before the first that isn't known to be flushed
//	    there: what comes before such a copy need not be seen. What the seal leaves out
//	    is copied with the tail, so that every list is whole on k+m shards, and a loss of
//	    m leaves it readable.
//	R9  What was decided before stands: seqs up to the last cut, those that the newest
//	    root covers, those below a live seal or that a header calls flushed. If of one of
//	    them only shards that can't tell may have the copy that counts, the log is
//	    undecided; with the newest root that is the newest copy, as the map names no
//	    other. If one is nowhere, that is an error.
//
// R1 to R5 are design §6.3 to 6.6, each found necessary by the model there; the
// tests run the same rules, and show what each one prevents.
package recovery
