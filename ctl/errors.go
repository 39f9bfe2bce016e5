package ctl

import (
	"encoding/json"
	"errors"
	"fmt"

	"strake/client"
	"strake/internal/errs"
)

// usageError is wrong usage: exit code 2.
type usageError struct{ error }

// Unwrap gives the cause.
func (u usageError) Unwrap() error { return u.error }

// usagef makes a usage error.
func usagef(format string, args ...any) error {
	return usageError{errs.New(errs.InvalidArgument, "", format, args...)}
}

// isUsage tells wrong usage from a refusal: it was said so, or it is cobra's own
// error, from before a verb began.
func (a *app) isUsage(err error) bool {
	var u usageError
	var typed *errs.Error
	return errors.As(err, &u) || !a.began && !errors.As(err, &typed)
}

// failure is an error as -o json prints it.
type failure struct {
	Error struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
		Hint    string `json:"hint"`
	} `json:"error"`
}

// asUsage gives wrong usage its kind, and a hint when it has none.
func asUsage(err error, command string) error {
	hint := errs.HintOf(err)
	if hint == "" {
		hint = command + " --help"
	}
	return errs.As(err, errs.InvalidArgument, "").(*errs.Error).WithHint("%s", hint)
}

// waiting tells on stderr what the verb waits for: a line for people, or one of JSON.
// It is called on another goroutine than the verb's.
func (a *app) waiting(w client.Waiting) {
	if a.json() {
		_ = json.NewEncoder(a.err).Encode(map[string]any{"waiting": map[string]any{"for": w.Op, "seconds": int64(w.For.Seconds()), "reason": w.Reason}})
		return
	}
	a.bars.line(a.err, fmt.Sprintf("strake: %s has waited for %d s: %s", w.Op, int64(w.For.Seconds()), w.Reason))
}

// printError writes an error to stderr: for people, or as one line of JSON.
func (a *app) printError(err error, asJSON bool) {
	kind, hint := errs.KindOf(err), errs.HintOf(err)
	if asJSON {
		var f failure
		f.Error.Kind, f.Error.Message, f.Error.Hint = kind.String(), err.Error(), hint
		_ = json.NewEncoder(a.err).Encode(f)
		return
	}
	fmt.Fprintf(a.err, "strake: %v\n", err)
	if hint != "" {
		fmt.Fprintf(a.err, "  try: %s\n", hint)
	}
}
