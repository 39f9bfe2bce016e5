package errs

import "fmt"

// Kind says what went wrong in terms of what the caller should do. It is also
// an error, so that errors.Is(err, errs.NoSpace) works. Numbers are frozen.
type Kind uint16

const (
	OK               Kind = 0  // no error; only on the wire
	InvalidArgument  Kind = 1  // the request is wrong: change it
	NotFound         Kind = 2  // the named thing does not exist
	AlreadyExists    Kind = 3  // the name is taken
	NotLeader        Kind = 4  // ask the server that the error names
	StaleEpoch       Kind = 5  // a newer writer holds the volume: stop writing
	LeaseHeld        Kind = 6  // somebody else writes the volume: wait, or take over
	LeaseLost        Kind = 7  // the session or lease is gone: reopen
	Unavailable      Kind = 8  // not reachable now: degrade, or back off and retry
	NoSpace          Kind = 9  // full: delete, or add devices
	Corrupt          Kind = 10 // stored bytes are wrong: use other shards and report
	NotHere          Kind = 11 // the shard is not on this server: ask for its placement
	StaleGeneration  Kind = 12 // an outdated placement: ask for its placement
	IncarnationMoved Kind = 13 // the device restarted since: un-synced data may be lost
	Deadline         Kind = 14 // can't be done, or was not done, in the time allowed
	Overloaded       Kind = 15 // refused at the door: back off
	Unauthenticated  Kind = 16 // no valid identity
	PermissionDenied Kind = 17 // not allowed for this identity
	Undecided        Kind = 18 // recovery can't decide: a named shard must come back
	Conflict         Kind = 19 // the same command id or state with other content: a bug or a rival
	ReadOnly         Kind = 20 // a snapshot, tag or read-only handle
	Internal         Kind = 21 // a broken invariant: a bug
	Version          Kind = 22 // a record or peer of an unknown version
	Frozen           Kind = 23 // too few servers to write safely: waits for more
	Sealed           Kind = 24 // the segment takes no more appends
	TooLarge         Kind = 25 // over a length cap
	Canceled         Kind = 26 // the caller gave up
	WrongCell        Kind = 27 // a peer or device of another cell
	Closed           Kind = 28 // the handle or server is closed
	Busy             Kind = 29 // in use: a device by another process, a volume by readers
	OutOfRange       Kind = 30 // past the end of the volume
)

var kindNames = [...]string{
	"ok", "invalid-argument", "not-found", "already-exists", "not-leader", "stale-epoch", "lease-held",
	"lease-lost", "unavailable", "no-space", "corrupt", "not-here", "stale-generation", "incarnation-moved",
	"deadline", "overloaded", "unauthenticated", "permission-denied", "undecided", "conflict", "read-only",
	"internal", "version", "frozen", "sealed", "too-large", "canceled", "wrong-cell", "closed", "busy", "out-of-range",
}

// String gives the kind's name as the command line prints it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind-%d", uint16(k))
}

// Error makes a kind usable as a sentinel.
func (k Kind) Error() string { return k.String() }

// Retryable tells whether the same request may succeed later or elsewhere.
func (k Kind) Retryable() bool {
	switch k {
	case NotLeader, Unavailable, NotHere, StaleGeneration, Overloaded, Frozen, Busy:
		return true
	}
	return false
}
