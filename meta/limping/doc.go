// Package limping judges which devices limp: answer, but so slowly that whoever
// waits for them would be better off without.
//
// It owns the rule and the evidence of one leader's term; it owns no clock, no state
// of the cell and no consequence. Words of clients and measurements of chunk servers
// go in, verdicts come out; the leader records them, and placement does the rest.
//
// # Evidence
//
// A client says that reads of a device took much longer than those of others, time
// after time; its word counts for a while, and it may take it back. A chunk server
// measures its own devices with a small read and a small durable write now and then:
// one that takes several times the median of the other servers' devices is slow,
// unless it moved much more than they did, for then it is busy.
//
// A device limps when two witnesses say so, of which its own server may be one; or
// when its own server has said so for long enough, which harms nobody else. One
// client alone convicts nobody, and one that blames more than a quarter of the cell
// counts for nothing: the trouble is its own.
//
// # Return
//
// A device that limps is measured more often. It is up again when nobody complains
// and it was quick for as long as its hold, which doubles each time that it limps
// again soon after, so that a device that comes and goes is left alone longer and
// longer. Quick is less than slow is not: between the two nothing changes.
//
// # Invariants
//
//	I1  At most one verdict on a device in one look, and it differs from the last.
//	I2  A device that limps was blamed by Witnesses witnesses at once, or was slow
//	    OwnAlone times in a row, or limped when the term began.
//	I3  Words and devices are bounded: one word for each witness and device, at
//	    most maxWords of a device.
//
// A Judge is not safe for concurrent use.
package limping
