// Package ahead decides what of a volume is read before it is asked for. It is
// pure: it is told of each read, and says which range to fetch. The shell (package
// client) fetches and keeps the bytes, and knows a place by its segment and offset,
// so that nothing kept is ever stale.
//
// A stream is a series of reads of which each begins where the one before ended, or
// a little later when several goroutines read it together. The last few places where
// a stream could go on are remembered; random reads push each other out of there and
// never become one. How many reads make a stream, and how much is fetched at first,
// is the class's starting point: a restore of a checkpoint is believed at once,
// inference seldom reads on. What is fetched ahead doubles each time that the stream
// has come through half of it, up to two rows of the volume's geometry, the longest requests to
// all its servers twice, and never more than the memory that there is.
//
// Nothing is fetched where it could not help: for reads that take a whole row and so
// keep every server busy by themselves, and while the caller has half of the window
// under way in other reads.
//
// Invariants:
//
//	I1  A fetched range begins at or after the end of the read that caused it, and
//	    what was given once is not given again while its stream goes on.
//	I2  A stream's reader is never more than the window behind what was given.
//	I3  Nothing is allocated.
package ahead
