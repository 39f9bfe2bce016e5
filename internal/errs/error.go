package errs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Error is a typed error.
type Error struct {
	Op      string // what was being done, with identity and place: `read shard 7/3 at 8192`
	Kind    Kind
	Message string // what was refused and why; may be empty when Cause tells
	Hint    string // what to do; may be empty
	Leader  string // with NotLeader: the leader's address, empty when unknown
	Cause   error
}

// New makes a typed error. The message says what was refused and why.
func New(kind Kind, op, format string, args ...any) *Error {
	return &Error{Op: op, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// WithHint adds advice: what the caller can do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Wrap adds an operation to err and keeps its kind. Wrap once per boundary.
// It returns nil for a nil err.
func Wrap(err error, op string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Op: fmt.Sprintf(op, args...), Kind: KindOf(err), Cause: err}
}

// As gives err a kind, whatever it was before.
func As(err error, kind Kind, op string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Op: fmt.Sprintf(op, args...), Kind: kind, Cause: err}
}

// Error gives `op: message: cause`. An operation that the cause begins with again,
// as when both ends of a connection name it, stands there once.
func (e *Error) Error() string {
	s := e.Op
	add := func(t string) {
		if t == "" {
			return
		}
		if s != "" {
			s += ": "
		}
		s += t
	}
	add(e.Message)
	if e.Cause != nil {
		cause := e.Cause.Error()
		if e.Message == "" {
			s, cause = once(s, cause)
		}
		add(cause)
	}
	if e.Message == "" && e.Cause == nil {
		add(e.Kind.String())
	}
	return s
}

// once leaves out the less exact of an operation and the one that the cause begins
// with, when one says the other: `open volume x` and `open volume: there is none`.
func once(op, cause string) (string, string) {
	inner, rest, found := strings.Cut(cause, ": ")
	switch {
	case !found || op == "" || inner == "":
		return op, cause
	case op == inner || strings.HasPrefix(op, inner+" "):
		return op, rest
	case strings.HasPrefix(inner, op+" "):
		return "", cause
	}
	return op, cause
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is matches the error's own kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// KindOf gives the kind of the outermost typed error in err's chain; Internal
// for an error without one, OK for nil.
func KindOf(err error) Kind {
	if err == nil {
		return OK // without the allocations below: hot paths ask this of each call
	}
	var e *Error
	var k Kind
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.As(err, &k):
		return k
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Deadline
	}
	return Internal
}

// HintOf gives the first hint in err's tree, in the order in which errors.As looks.
func HintOf(err error) string {
	for err != nil {
		if e, ok := err.(*Error); ok && e.Hint != "" {
			return e.Hint
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return firstHint(joined.Unwrap())
		}
		err = errors.Unwrap(err)
	}
	return ""
}

func firstHint(all []error) string {
	for _, err := range all {
		if hint := HintOf(err); hint != "" {
			return hint
		}
	}
	return ""
}
