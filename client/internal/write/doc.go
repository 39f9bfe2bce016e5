// Package write is the write path of a volume as a pure step machine: which
// stripe is cut when, where each copy of it lies, what is acknowledged, what is
// flushed, and when to move on (design §5).
//
// It sees sizes and ids, never payload bytes. It does no I/O, reads no clock
// (time is an argument, monotonic), starts nothing and locks nothing. The shell
// holds a mutex around one input and the Take that follows it, and then does
// what the actions say: it encodes, sends, calls the metadata service, answers
// callers, keeps the payload and the extent map. Each thing asked for is
// answered by exactly one input. Equal inputs give equal actions.
//
// The life of a write. Submit puts its ranges into pending. A stripe is cut of
// what is pending at once while none is in flight; else when k x 1 MiB wait, on
// Flush, after 1 ms, or when a place in flight comes free. A stripe gets seq and
// place together (Cut), so space is there before the seq is: without it writes
// wait, or are refused with NoSpace before they have one. When all participants
// have a stripe and all lower seqs are acknowledged it is acknowledged (Acked,
// WriteDone). When all participants made it durable in the incarnation that
// stored it and all lower seqs are flushed it is flushed (Flushed, FlushDone).
// Syncs go in rounds, one Sync to each device; who comes during a round shares
// the next one.
//
// Flushed writes. One caller who flushes each of its small writes would pay two
// round trips for each. So where most of the recent writes were followed by a
// Flush, the append of a small write carries the Durable flag while nothing else
// is to be flushed, and its Flush finds it flushed. A wrong guess costs devices a
// sync and nothing else. With many callers a round of syncs serves all who wait.
//
// Moving on. A participant that fails, is late, restarted, or is called down
// ends the segments it is in. All un-flushed stripes there are displaced and go
// again, in seq order, before any new stripe: into an open segment whose last
// seq is lower, else into a fresh one (Move). Only the current copy counts.
// The segment left behind is sealed at its flushed stripes; until the metadata
// service takes the seal it is asked again. A late participant is one whose
// answer takes longer than four times its recent p99, within 20 ms and 2 s,
// while others answered what was sent since; then the metadata service's
// budget is asked (RequestMove), at most one such move a second. A refused
// request is no lateness. After three moves without progress the core pauses,
// longer each time.
//
// Segments. One is open; a second one, up to four, when for 20 ms all places in
// flight of the open ones were taken while a full stripe was pending. Spares are
// asked for ahead: what ten seconds of the last minute's rate take, 2 to 64,
// from the first write on. Spares on servers that failed in the last 10 s are
// not used, and are given back (sealed empty) once others are there.
//
// Invariants, held after each step (Check names the broken one):
//
//	I1  The log is gapless: it holds exactly the seqs from flushed+1 to the last.
//	I2  flushed <= acked <= last, and each of them only grows.
//	I3  In a segment seqs ascend, rows don't overlap, and end within its length.
//	I4  A seal holds flushed stripes only, each in the segment of its last copy.
//	I5  Held is the payload that is pending or not flushed.
//	I6  A stripe lies in a segment in use, or is displaced and waits in seq
//	    order; while any is displaced no new one is cut.
//	I7  Bounds: open segments, spares, stripes in flight per segment, payload held
//	    (the cap and one write).
//	I8  Every write and flush taken in gets exactly one answer.
//
// MapWriter uses the same machine for map checkpoints.
package write
