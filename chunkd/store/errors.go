package store

import (
	"errors"
	"io/fs"
	"syscall"

	"strake/internal/errs"
)

// typed gives an error of the disk its kind and says what was being done: a
// full disk is NoSpace, a missing file Corrupt (the index says that it exists),
// any other untyped error Unavailable. Typed errors keep their kind.
func typed(err error, op string, args ...any) error {
	var e *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return errs.Wrap(err, op, args...)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.As(err, errs.NoSpace, op, args...)
	case errors.Is(err, fs.ErrNotExist):
		return errs.As(err, errs.Corrupt, op, args...)
	}
	return errs.As(err, errs.Unavailable, op, args...)
}

// typedRead is typed for reads: whatever the disk says, the bytes can't be had,
// and the caller should use the other shards.
func typedRead(err error, op string, args ...any) error {
	var e *errs.Error
	if err == nil || errors.As(err, &e) {
		return errs.Wrap(err, op, args...)
	}
	return errs.As(err, errs.Corrupt, op, args...)
}
