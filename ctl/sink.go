package ctl

import (
	"io"
	"os"
	"sync"

	"strake/internal/errs"
)

// sink is the command's standard output. It remembers the first write that failed
// (a full disk, mostly): text is printed without a look at each line's error, and
// what was not told must not end with success. Safe for concurrent use if to is.
type sink struct {
	to io.Writer

	mu  sync.Mutex
	err error // guarded by mu
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}

// terminal tells whether somebody watches.
func (s *sink) terminal() bool {
	f, ok := s.to.(*os.File)
	return ok && isTerminal(f)
}

// failed is why the output is not complete, nil when it is.
func (s *sink) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errs.As(s.err, errs.Unavailable, "write the output")
}
