package client

import "strake/internal/errs"

// Kinds of errors, for errors.Is.
const (
	ErrInvalidArgument = errs.InvalidArgument // the request is wrong: change it
	ErrNotFound        = errs.NotFound        // no such volume
	ErrExists          = errs.AlreadyExists   // the name is taken
	ErrStaleEpoch      = errs.StaleEpoch      // a newer writer holds the volume
	ErrLeaseHeld       = errs.LeaseHeld       // somebody else writes the volume; the text names them
	ErrLeaseLost       = errs.LeaseLost       // the session is gone: open the volume again
	ErrUnavailable     = errs.Unavailable     // not reachable now
	ErrNoSpace         = errs.NoSpace         // the cell is full; nothing of the write was stored
	ErrCorrupt         = errs.Corrupt         // too many units are damaged to decode
	ErrDeadline        = errs.Deadline        // not done in time
	ErrReadOnly        = errs.ReadOnly        // the handle or snapshot takes no writes
	ErrUndecided       = errs.Undecided       // recovery waits for a named shard
	ErrClosed          = errs.Closed          // the handle is closed
	ErrOutOfRange      = errs.OutOfRange      // past the end of the volume
	ErrBusy            = errs.Busy            // in use by those that the text names
	ErrFrozen          = errs.Frozen          // too few servers to write safely
)
