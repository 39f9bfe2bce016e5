package ctl

import (
	"errors"
	"os"

	"strake/client"
	"strake/internal/errs"
)

// untraced refuses a trace of what other processes do.
func (a *app) untraced() error {
	if a.trace == "" {
		return nil
	}
	return usagef("--trace %s: the reads and writes of a bench are its workers', and are not recorded", a.trace)
}

// openTrace begins the trace that --trace asks for, nil when it does not; done ends
// it.
func (a *app) openTrace() (t *client.Trace, done func() error, err error) {
	if a.trace == "" {
		return nil, func() error { return nil }, nil
	}
	f, err := os.Create(a.trace)
	if err != nil {
		return nil, nil, errs.As(err, errs.Unavailable, "begin a trace")
	}
	t = client.NewTrace(f)
	return t, func() error {
		return errors.Join(t.Close(), errs.As(f.Close(), errs.Unavailable, "end the trace %s", a.trace))
	}, nil
}
